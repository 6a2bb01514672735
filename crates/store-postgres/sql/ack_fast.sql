-- ack: leased → gone, where nothing has to be kept or judged. $1 queues and $2 their stamps, as the caller knows them; then
-- an item each: $3 queue, $4 id, $5 lease. Answers for each item what became of it: 0 gone, 1 not found, 2 another lease,
-- 3 ask again.
WITH known AS MATERIALIZED (
    SELECT NOT EXISTS (
        SELECT FROM unnest($1::int[], $2::bigint[]) AS k (id, stamp) LEFT JOIN redrive.queue q ON q.id = k.id
        WHERE q.stamp IS DISTINCT FROM k.stamp) AS fresh
),
item AS MATERIALIZED (
    SELECT * FROM unnest($3::int[], $4::uuid[], $5::bigint[]) WITH ORDINALITY AS t (queue_id, id, lease_id, nth)
),
gone AS (
    DELETE FROM redrive.message m USING item, known
    WHERE known.fresh AND m.queue_id = item.queue_id AND m.id = item.id AND m.state = 2 AND m.lease_id = item.lease_id
        AND m.nacked IS NULL
    RETURNING m.queue_id, m.id, m.no, m.class_id, m.attempts, m.leased_at, m.storied, m.unique_key, m.dedup_key
),
content AS (DELETE FROM redrive.content c USING gone WHERE c.no = gone.no),
history AS (DELETE FROM redrive.history h USING gone WHERE gone.storied AND h.no = gone.no),
failure AS (DELETE FROM redrive.failure f USING gone WHERE gone.storied AND f.no = gone.no),
let_go AS (
    DELETE FROM redrive.hold h USING gone
    WHERE gone.unique_key AND h.queue_id = gone.queue_id AND h.key = gone.dedup_key AND h.message = gone.id
        AND h.until IS NULL
    RETURNING h.queue_id
),
counted AS (
    INSERT INTO redrive.tally (queue_id, leased, ack, holds)
    SELECT queue_id, -count(*), count(*), -nullif((SELECT count(*) FROM let_go l WHERE l.queue_id = gone.queue_id), 0)
    FROM gone GROUP BY queue_id
)
SELECT known.fresh, (CASE
        WHEN gone.id IS NOT NULL THEN 0
        WHEN m.id IS NULL OR m.state = 4 THEN 1
        WHEN m.state = 2 AND m.lease_id = item.lease_id THEN 3
        ELSE 2
    END)::smallint, gone.class_id, gone.attempts, gone.leased_at
FROM known CROSS JOIN item
LEFT JOIN gone ON gone.queue_id = item.queue_id AND gone.id = item.id
LEFT JOIN redrive.message m ON gone.id IS NULL AND m.queue_id = item.queue_id AND m.id = item.id
ORDER BY item.nth
