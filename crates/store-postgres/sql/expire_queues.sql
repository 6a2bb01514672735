-- Queues with leases that ran out, however many that did not are in front of them: $1 now.
WITH RECURSIVE walk AS (
    (SELECT m.queue_id, m.deadline FROM redrive.message m WHERE m.state = 2 ORDER BY m.queue_id, m.deadline LIMIT 1)
    UNION ALL
    SELECT next.* FROM walk CROSS JOIN LATERAL (
        SELECT m.queue_id, m.deadline FROM redrive.message m WHERE m.state = 2 AND m.queue_id > walk.queue_id
        ORDER BY m.queue_id, m.deadline LIMIT 1
    ) next
)
SELECT q.name FROM walk JOIN redrive.queue q ON q.id = walk.queue_id WHERE walk.deadline <= $1 ORDER BY walk.deadline
