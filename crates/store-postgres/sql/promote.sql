-- delayed → ready, as the clock says: $1 queue, $2 now, $3 how many. Answers how many there were, and the earliest
-- time of theirs.
WITH due AS (
    SELECT m.id FROM redrive.message m WHERE m.queue_id = $1 AND m.state = 0 AND m.visible_at <= $2
    ORDER BY m.visible_at, m.place LIMIT $3 FOR UPDATE SKIP LOCKED
), promoted AS (
    UPDATE redrive.message m SET state = 1 FROM due WHERE m.queue_id = $1 AND m.id = due.id RETURNING m.visible_at
)
SELECT count(*), min(visible_at) FROM promoted
