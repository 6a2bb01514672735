-- The message that is probed: a ready one with the fewest attempts, rather another than the last. $1 queue, $2 now, $3 the
-- last, $4 types, $5 sources, null for all, $6 the cap on attempts, $7 that on deliveries.
SELECT m.id FROM (
    (SELECT m.id, m.attempts, m.rank, m.visible_at, m.place, m.state, m.expires_at, m.max_attempts, m.deliveries,
            m.deliveries_before, m.fairness_key, m.class_id
        FROM redrive.message m WHERE m.queue_id = $1 AND m.state = 1 AND NOT m.retry)
    UNION ALL
    (SELECT m.id, m.attempts, m.rank, m.visible_at, m.place, m.state, m.expires_at, m.max_attempts, m.deliveries,
            m.deliveries_before, m.fairness_key, m.class_id
        FROM redrive.message m WHERE m.queue_id = $1 AND m.state < 2 AND m.retry AND m.state = 1 ORDER BY m.attempts)
) m
LEFT JOIN redrive.key_setting s ON s.queue_id = $1 AND s.key = m.fairness_key
WHERE coalesce(s.paused_until, 0) <= $2 AND (m.expires_at IS NULL OR m.expires_at > $2)
    AND ($4::text[] IS NULL AND $5::text[] IS NULL OR m.class_id = ANY (ARRAY(
        SELECT c.id FROM redrive.class c WHERE c.queue_id = $1
            AND ($4 IS NULL OR c.type = ANY ($4)) AND ($5 IS NULL OR c.source = ANY ($5)))))
    AND m.attempts < coalesce(m.max_attempts, $6::integer, 2147483647)
    AND ($7::integer IS NULL OR m.deliveries - m.deliveries_before < $7)
ORDER BY m.id = coalesce($3::uuid, '00000000-0000-0000-0000-000000000000'), m.attempts, m.rank, m.visible_at, m.place
LIMIT 1
