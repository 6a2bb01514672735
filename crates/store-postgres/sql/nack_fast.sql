-- nack: leased → delayed | ready, as the judge said, where nothing dies. $1 now, null for the clock, $2 no earlier than; $3
-- queues and $4 their stamps, as the caller knows them; then an item each: $5 queue, $6 id, $7 lease, $8 delay, $9 rule,
-- $10 error, $11 checkpoint, null for the last one. Answers for each item what became of it: 0 waiting, 1 not found,
-- 2 another lease, 3 ask again, 4 it would die.
WITH known AS MATERIALIZED (
    SELECT greatest($2::bigint, coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)) AS now,
        NOT EXISTS (
            SELECT FROM unnest($3::int[], $4::bigint[]) AS k (id, stamp) LEFT JOIN redrive.queue q ON q.id = k.id
            WHERE q.stamp IS DISTINCT FROM k.stamp) AS fresh
),
item AS MATERIALIZED (
    SELECT t.*, least(253402300799999, known.now + t.delay) AS due, known.now, known.fresh
    FROM known CROSS JOIN unnest($5::int[], $6::uuid[], $7::bigint[], $8::bigint[], $9::smallint[], $10::text[], $11::bytea[])
        WITH ORDINALITY AS t (queue_id, id, lease_id, delay, rule, error, checkpoint, nth)
),
-- Each is looked up by its key. The limit keeps it so: a plan made while there was nothing would rather read all leases.
held AS MATERIALIZED (
    SELECT m.*, item.delay, item.due, item.now, item.rule, item.error, item.checkpoint, nextval('redrive.place') AS place
    FROM item CROSS JOIN LATERAL (
        SELECT m.queue_id, m.id, m.no, m.class_id, m.attempts, m.deliveries, m.leased_at, m.consumer
        FROM redrive.message m
        WHERE m.queue_id = item.queue_id AND m.id = item.id AND item.fresh AND m.state = 2
            AND m.lease_id = item.lease_id AND m.nacked IS NULL AND (m.expires_at IS NULL OR item.due < m.expires_at)
        LIMIT 1 FOR UPDATE
    ) m
    ORDER BY item.nth
),
waiting AS (
    UPDATE redrive.message m
    SET state = CASE WHEN held.due > held.now THEN 0 ELSE 1 END, visible_at = held.due, place = held.place, retry = true,
        storied = true, lease_id = NULL, consumer = NULL, leased_at = NULL, deadline = NULL
    FROM held WHERE m.queue_id = held.queue_id AND m.id = held.id
),
history AS (
    INSERT INTO redrive.history (no, last_error, checkpoint) SELECT no, error, checkpoint FROM held
    ON CONFLICT (no) DO UPDATE SET last_error = excluded.last_error,
        checkpoint = coalesce(excluded.checkpoint, history.checkpoint)
),
-- The oldest of twenty makes room.
forgotten AS (
    DELETE FROM redrive.failure f USING held
    WHERE held.deliveries > 19 AND f.no = held.no AND f.place <= (
        SELECT o.place FROM redrive.failure o WHERE o.no = held.no ORDER BY o.place DESC OFFSET 19 LIMIT 1)
),
failure AS (
    INSERT INTO redrive.failure (no, place, attempt, cause, rule, leased_at, ended_at, delay, consumer, error)
    SELECT no, place, attempts, 0, rule, leased_at, now, due - now, consumer, error FROM held
),
counted AS (
    INSERT INTO redrive.tally (queue_id, waiting, leased, nack)
    SELECT queue_id, count(*), -count(*), count(*) FROM held GROUP BY queue_id
)
SELECT item.now, item.fresh, (CASE
        WHEN m.no IN (SELECT held.no FROM held) THEN 0
        WHEN m.id IS NULL OR m.state = 4 THEN 1
        WHEN m.state = 2 AND m.lease_id = item.lease_id THEN CASE WHEN item.due >= m.expires_at THEN 4 ELSE 3 END
        ELSE 2
    END)::smallint, m.class_id, m.attempts, m.leased_at, item.due, m.consumer
FROM item
LEFT JOIN LATERAL (
    SELECT m.id, m.no, m.state, m.lease_id, m.expires_at, m.class_id, m.attempts, m.leased_at, m.consumer
    FROM redrive.message m WHERE m.queue_id = item.queue_id AND m.id = item.id LIMIT 1
) m ON true
ORDER BY item.nth
