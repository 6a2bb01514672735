-- Waiting messages whose time to live passed, the earliest first: $1 queue, $2 now, $3 how many.
SELECT {message m}, {story} FROM (
    SELECT m.* FROM redrive.message m
    WHERE m.queue_id = $1 AND m.state < 2 AND m.expires_at IS NOT NULL AND m.expires_at <= $2
    ORDER BY m.expires_at, m.id LIMIT $3 FOR UPDATE SKIP LOCKED
) m
{join story m}
ORDER BY m.expires_at, m.id
