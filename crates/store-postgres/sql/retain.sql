-- Messages of a queue in a state that are beyond its retention, the oldest first: $1 queue, $2 state, 3 dead or 4 done,
-- $3 ended no later than, null for no age, $4 how many are kept, null for no count, $5 how many.
SELECT m.id, m.ended_at FROM redrive.message m
WHERE m.queue_id = $1 AND m.state = $2 AND (m.ended_at <= $3 OR (m.ended_at, m.id) <= (
    SELECT o.ended_at, o.id FROM redrive.message o WHERE $4::bigint IS NOT NULL AND o.queue_id = $1 AND o.state = $2
    ORDER BY o.ended_at DESC, o.id DESC OFFSET $4 LIMIT 1))
ORDER BY m.ended_at, m.id LIMIT $5 FOR UPDATE SKIP LOCKED
