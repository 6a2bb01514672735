-- Messages of a queue that are beyond its retention, the oldest first: $1 queue, $2 ended no later than, null for no age,
-- $3 how many are kept, null for no count, $4 how many. The state, 3 dead or 4 done, is filled in: each has an index.
WITH last AS MATERIALIZED (
    SELECT m.ended_at, m.id FROM redrive.message m
    WHERE $3::bigint IS NOT NULL AND m.queue_id = $1 AND m.state = {state}
    ORDER BY m.ended_at DESC, m.id DESC OFFSET $3 LIMIT 1
)
SELECT m.id, m.ended_at FROM redrive.message m
WHERE m.queue_id = $1 AND m.state = {state} AND m.ended_at <= greatest($2::bigint, (SELECT ended_at FROM last))
    AND (m.ended_at <= $2 OR (m.ended_at, m.id) <= (SELECT ended_at, id FROM last))
ORDER BY m.ended_at, m.id LIMIT $4 FOR UPDATE SKIP LOCKED
