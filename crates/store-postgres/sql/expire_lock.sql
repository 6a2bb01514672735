-- Leases that ran out, the most overdue first; those that somebody else deals with are passed over.
-- $1 queue, $2 now, $3 how many.
SELECT {message m}, {story} FROM (
    SELECT m.* FROM redrive.message m WHERE m.queue_id = $1 AND m.state = 2 AND m.deadline <= $2
    ORDER BY m.deadline, m.lease_id LIMIT $3 FOR UPDATE SKIP LOCKED
) m
{join story m}
ORDER BY m.deadline, m.lease_id
