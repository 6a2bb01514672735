-- When time will next change something in a queue: $1 id, $2 now.
SELECT
    (SELECT m.visible_at FROM redrive.message m WHERE m.queue_id = $1 AND m.state = 0 AND m.visible_at > $2
        ORDER BY m.visible_at LIMIT 1) AS ready,
    (SELECT m.deadline FROM redrive.message m WHERE m.queue_id = $1 AND m.state = 2
        ORDER BY m.deadline LIMIT 1) AS overdue,
    (SELECT m.expires_at FROM redrive.message m WHERE m.queue_id = $1 AND m.state < 2 AND m.expires_at IS NOT NULL
        ORDER BY m.expires_at LIMIT 1) AS lapse
