-- The messages that are settled, held until the transaction ends, in an order in which nobody waits in a circle:
-- $1 queues, $2 ids.
SELECT {message m}, {story} FROM (
    SELECT m.* FROM unnest($1::int[], $2::uuid[]) AS t (queue_id, id)
    JOIN redrive.message m ON m.queue_id = t.queue_id AND m.id = t.id
    ORDER BY m.queue_id, m.id FOR UPDATE OF m
) m
{join story m}
