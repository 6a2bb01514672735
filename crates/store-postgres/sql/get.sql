-- A message: $1 name of the queue, $2 id.
SELECT {message m}, {story}, {content}
FROM redrive.queue q
JOIN redrive.message m ON m.queue_id = q.id AND m.id = $2
JOIN redrive.content ON content.no = m.no
{join story m}
WHERE q.name = $1
