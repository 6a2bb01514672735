-- Holds the message that is probed: $1 queue, $2 id.
SELECT {message m}, {story}, {content} FROM (
    SELECT m.* FROM redrive.message m WHERE m.queue_id = $1 AND m.id = $2 AND m.state = 1 FOR UPDATE SKIP LOCKED
) m
JOIN redrive.content ON content.no = m.no
{join story m}
