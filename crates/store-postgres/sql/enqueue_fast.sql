-- nothing → ready | delayed, where nothing has to be counted first. $1 now, null for the clock, $2 no earlier than; $3 queues
-- and $4 their stamps, as the caller knows them; then an array for each column;
-- $20 a mark, by which an answer that was lost is found. Answers for each item whether it is new.
WITH clock AS MATERIALIZED (
    SELECT greatest($2::bigint, coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)) AS now
),
-- They cannot be deleted before this is written.
queue AS MATERIALIZED (SELECT q.id, q.stamp FROM redrive.queue q WHERE q.id = ANY ($3::int[]) ORDER BY q.id FOR KEY SHARE),
known AS MATERIALIZED (
    SELECT NOT EXISTS (
        SELECT FROM unnest($3::int[], $4::bigint[]) AS k (id, stamp) LEFT JOIN queue q ON q.id = k.id
        WHERE q.stamp IS DISTINCT FROM k.stamp) AS fresh
),
item AS MATERIALIZED (
    SELECT t.*, clock.now, least(253402300799999, CASE WHEN t.relative THEN clock.now + t.visible
            ELSE greatest(clock.now, t.visible) END) AS visible_at,
        least(253402300799999, CASE WHEN t.expires_relative THEN clock.now + t.expires
            ELSE greatest(clock.now, t.expires) END) AS expires_at,
        nextval('redrive.place') AS no
    FROM clock, known, unnest($5::int[], $6::int[], $7::uuid[], $8::bigint[], $9::boolean[], $10::bigint[], $11::boolean[],
        $12::smallint[], $13::int[], $14::int[], $15::bigint[], $16::text[], $17::bytea[], $18::text[], $19::text[])
        WITH ORDINALITY AS t (queue_id, class_id, id, visible, relative, expires, expires_relative, rank, size,
            max_attempts, lease_timeout, fairness_key, body, content_type, headers, nth)
    WHERE known.fresh
),
message AS (
    INSERT INTO redrive.message (queue_id, class_id, id, no, created_at, visible_at, place, state, rank, size,
        max_attempts, lease_timeout, expires_at, fairness_key)
    SELECT queue_id, class_id, id, no, now, visible_at, no, CASE WHEN visible_at > now THEN 0 ELSE 1 END, rank, size,
        max_attempts, lease_timeout, CASE WHEN expires IS NOT NULL THEN expires_at END, fairness_key
    FROM item ORDER BY nth
    ON CONFLICT (queue_id, id) DO NOTHING
    RETURNING queue_id, no
),
-- `IS TRUE` keeps the list of what is new a hashed one; as a join it would be walked for each item.
content AS (
    INSERT INTO redrive.content (no, body, content_type, headers)
    SELECT item.no, item.body, item.content_type, item.headers::jsonb FROM item
    WHERE (item.no IN (SELECT message.no FROM message)) IS TRUE
),
answer AS MATERIALIZED (
    SELECT item.queue_id, item.nth, item.visible_at, item.no IN (SELECT message.no FROM message) AS new FROM item
),
counted AS (
    INSERT INTO redrive.tally (queue_id, waiting, enqueue, duplicates)
    SELECT queue_id, nullif(count(*) FILTER (WHERE new), 0), nullif(count(*) FILTER (WHERE new), 0),
        nullif(count(*) FILTER (WHERE NOT new), 0)
    FROM answer GROUP BY queue_id
),
marked AS (
    INSERT INTO redrive.mark (id, at, repeated)
    SELECT $20::uuid, min(clock.now), array_agg(answer.nth::int) FILTER (WHERE NOT answer.new)
    FROM clock CROSS JOIN answer HAVING count(*) > 0
)
SELECT clock.now, known.fresh, answer.new, answer.visible_at
FROM clock CROSS JOIN known LEFT JOIN answer ON true
ORDER BY answer.nth
