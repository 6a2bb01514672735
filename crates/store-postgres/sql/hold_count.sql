-- How many dedup keys are taken: $1 queue, $2 now.
SELECT (SELECT coalesce(sum(t.holds), 0)::bigint FROM redrive.tally t WHERE t.queue_id = $1)
    - (SELECT count(*) FROM redrive.hold h WHERE h.queue_id = $1 AND h.until <= $2)
