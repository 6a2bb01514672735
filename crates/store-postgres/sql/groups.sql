-- Dead messages whose errors are alike, the largest groups first: $1 id, $2 how many groups.
SELECT g.fingerprint, g.messages, g.first, g.last, sample.last_error, sample.dead_reason
FROM (
    SELECT fingerprint, count(*) AS messages, min(ended_at) AS first, max(ended_at) AS last
    FROM redrive.message WHERE queue_id = $1 AND state = 3 GROUP BY fingerprint
    ORDER BY count(*) DESC, fingerprint LIMIT $2
) g
CROSS JOIN LATERAL (
    SELECT h.last_error, m.dead_reason FROM redrive.message m LEFT JOIN redrive.history h ON h.no = m.no
    WHERE m.queue_id = $1 AND m.state = 3 AND m.fingerprint = g.fingerprint AND m.ended_at = g.last
    ORDER BY m.id DESC LIMIT 1
) sample
ORDER BY g.messages DESC, g.fingerprint
