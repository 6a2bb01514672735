-- When time will next change something in any queue: $1 now.
SELECT q.id, q.pauses,
    (SELECT m.visible_at FROM redrive.message m WHERE m.queue_id = q.id AND m.state = 0 AND m.visible_at > $1
        ORDER BY m.visible_at LIMIT 1) AS ready,
    (SELECT m.deadline FROM redrive.message m WHERE m.queue_id = q.id AND m.state = 2
        ORDER BY m.deadline LIMIT 1) AS overdue,
    (SELECT m.expires_at FROM redrive.message m WHERE m.queue_id = q.id AND m.state < 2 AND m.expires_at IS NOT NULL
        ORDER BY m.expires_at LIMIT 1) AS lapse
FROM redrive.queue q
