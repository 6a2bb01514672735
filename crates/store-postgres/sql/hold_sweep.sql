-- Forgets dedup keys whose window is over: $1 queue, $2 now, $3 how many. Answers how many.
WITH over AS (
    SELECT h.key FROM redrive.hold h WHERE h.queue_id = $1 AND h.until <= $2
    ORDER BY h.until LIMIT $3 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM redrive.hold h USING over WHERE h.queue_id = $1 AND h.key = over.key RETURNING 1
)
SELECT count(*) FROM gone
