-- ack: leased → gone, where nothing has to be kept or judged. $1 queues and $2 their stamps, as the caller knows them; then
-- an item each: $3 queue, $4 id, $5 lease. Answers for each item what became of it: 0 gone, 1 not found, 2 another lease,
-- 3 ask again.
WITH known AS MATERIALIZED (
    SELECT NOT EXISTS (
        SELECT FROM unnest($1::int[], $2::bigint[]) AS k (id, stamp) LEFT JOIN redrive.queue q ON q.id = k.id
        WHERE q.stamp IS DISTINCT FROM k.stamp) AS fresh
),
-- Each is looked up by its key. The limit keeps it so: a plan made while there was nothing would rather read all leases.
item AS MATERIALIZED (
    SELECT t.lease_id AS asked, t.nth, m.*
    FROM unnest($3::int[], $4::uuid[], $5::bigint[]) WITH ORDINALITY AS t (queue_id, id, lease_id, nth)
    LEFT JOIN LATERAL (
        SELECT m.ctid AS row, m.queue_id, m.id, m.no, m.state, m.lease_id, m.nacked IS NOT NULL AS nacked, m.class_id,
            m.attempts, m.leased_at, m.consumer
        FROM redrive.message m WHERE m.queue_id = t.queue_id AND m.id = t.id LIMIT 1
    ) m ON true
),
-- A row that somebody else changes at this moment is no longer where it was, and stays.
gone AS (
    DELETE FROM redrive.message m
    WHERE m.ctid = ANY (ARRAY(
        SELECT item.row FROM item, known
        WHERE known.fresh AND item.state = 2 AND item.lease_id = item.asked AND NOT item.nacked))
    RETURNING m.queue_id, m.id, m.no, m.storied, m.unique_key, m.dedup_key
),
content AS (DELETE FROM redrive.content WHERE no = ANY (ARRAY(SELECT gone.no FROM gone))),
history AS (DELETE FROM redrive.history WHERE no = ANY (ARRAY(SELECT gone.no FROM gone WHERE gone.storied))),
failure AS (DELETE FROM redrive.failure WHERE no = ANY (ARRAY(SELECT gone.no FROM gone WHERE gone.storied))),
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
        WHEN item.no IN (SELECT gone.no FROM gone) THEN 0
        WHEN item.id IS NULL OR item.state = 4 THEN 1
        WHEN item.state = 2 AND item.lease_id = item.asked THEN 3
        ELSE 2
    END)::smallint, item.class_id, item.attempts, item.leased_at, item.consumer
FROM known CROSS JOIN item
ORDER BY item.nth
