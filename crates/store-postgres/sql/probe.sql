-- The message that is probed: a ready one with the fewest attempts, rather another than the last. $1 queue, $2 now, $3 the
-- last, $4 types, $5 sources, null for all, $6 the cap on attempts, $7 that on deliveries.
--
-- In the fresh lane nothing was charged, so the best one is the first of one of its lines: the lines are walked and not the
-- messages. Retries have an order by attempts of their own.
WITH RECURSIVE line AS (
    (SELECT m.fairness_key AS key, m.rank FROM redrive.message m WHERE m.queue_id = $1 AND m.state = 1 AND NOT m.retry
        ORDER BY m.retry, m.fairness_key, m.rank LIMIT 1)
    UNION ALL
    SELECT next.* FROM line CROSS JOIN LATERAL (
        SELECT m.fairness_key, m.rank FROM redrive.message m
        WHERE m.queue_id = $1 AND m.state = 1 AND NOT m.retry AND (m.fairness_key, m.rank) > (line.key, line.rank)
        ORDER BY m.retry, m.fairness_key, m.rank LIMIT 1
    ) next
),
wanted AS MATERIALIZED (
    SELECT CASE WHEN $4::text[] IS NULL AND $5::text[] IS NULL THEN NULL ELSE ARRAY(
        SELECT c.id FROM redrive.class c WHERE c.queue_id = $1
            AND ($4 IS NULL OR c.type = ANY ($4)) AND ($5 IS NULL OR c.source = ANY ($5))) END AS ids
)
SELECT best.id FROM (
    SELECT first.* FROM line
    LEFT JOIN redrive.key_setting s ON s.queue_id = $1 AND s.key = line.key
    CROSS JOIN LATERAL (
        SELECT m.id, m.attempts, m.rank, m.visible_at, m.place FROM redrive.message m
        WHERE m.queue_id = $1 AND m.state = 1 AND NOT m.retry AND m.fairness_key = line.key AND m.rank = line.rank
            AND (m.expires_at IS NULL OR m.expires_at > $2)
            AND (SELECT ids IS NULL OR m.class_id = ANY (ids) FROM wanted)
            AND m.attempts < coalesce(m.max_attempts, $6::integer, 2147483647)
            AND ($7::integer IS NULL OR m.deliveries - m.deliveries_before < $7) AND m.id IS DISTINCT FROM $3::uuid
        ORDER BY m.retry, m.fairness_key, m.rank, m.visible_at, m.place LIMIT 1
    ) first
    WHERE coalesce(s.paused_until, 0) <= $2
    UNION ALL
    (SELECT m.id, m.attempts, m.rank, m.visible_at, m.place FROM redrive.message m
        LEFT JOIN redrive.key_setting s ON s.queue_id = $1 AND s.key = m.fairness_key
        WHERE m.queue_id = $1 AND m.state = 1 AND m.retry
            AND (m.expires_at IS NULL OR m.expires_at > $2)
            AND (SELECT ids IS NULL OR m.class_id = ANY (ids) FROM wanted)
            AND m.attempts < coalesce(m.max_attempts, $6::integer, 2147483647)
            AND ($7::integer IS NULL OR m.deliveries - m.deliveries_before < $7) AND m.id IS DISTINCT FROM $3 AND coalesce(s.paused_until, 0) <= $2
        ORDER BY m.attempts, m.rank, m.visible_at, m.place LIMIT 1)
    UNION ALL
    (SELECT m.id, 2147483647, m.rank, m.visible_at, m.place FROM redrive.message m
        LEFT JOIN redrive.key_setting s ON s.queue_id = $1 AND s.key = m.fairness_key
        WHERE m.queue_id = $1 AND m.state = 1 AND m.id = $3 AND (m.expires_at IS NULL OR m.expires_at > $2)
            AND (SELECT ids IS NULL OR m.class_id = ANY (ids) FROM wanted)
            AND m.attempts < coalesce(m.max_attempts, $6::integer, 2147483647)
            AND ($7::integer IS NULL OR m.deliveries - m.deliveries_before < $7) AND coalesce(s.paused_until, 0) <= $2)
) best
ORDER BY best.attempts, best.rank, best.visible_at, best.place LIMIT 1
