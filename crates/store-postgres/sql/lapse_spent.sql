-- Waiting messages that are over a cap which was lowered: $1 queue, $2 now, $3 the cap on attempts, null for none, $4 that
-- on deliveries, $5 how many.
SELECT {message m}, {story} FROM (
    SELECT m.* FROM redrive.message m
    JOIN (
        SELECT a.id FROM redrive.message a WHERE $3::integer IS NOT NULL AND a.queue_id = $1 AND a.state = 1 AND a.retry
            AND a.attempts >= $3 AND a.max_attempts IS NULL
        UNION
        SELECT a.id FROM redrive.message a WHERE $3 IS NOT NULL AND a.queue_id = $1 AND a.state = 0 AND a.retry
            AND a.attempts >= $3 AND a.max_attempts IS NULL
        UNION
        SELECT d.id FROM redrive.message d WHERE $4::integer IS NOT NULL AND d.queue_id = $1 AND d.state < 2
            AND d.deliveries > d.deliveries_before AND d.deliveries - d.deliveries_before >= $4
    ) spent ON spent.id = m.id
    WHERE m.queue_id = $1 AND m.state < 2 AND (m.expires_at IS NULL OR m.expires_at > $2)
    ORDER BY m.id LIMIT $5 FOR UPDATE OF m SKIP LOCKED
) m
{join story m}
ORDER BY m.id
