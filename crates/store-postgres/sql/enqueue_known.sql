-- Messages that are there already: $1 queues, $2 ids.
SELECT m.queue_id, m.id FROM unnest($1::int[], $2::uuid[]) AS t (queue_id, id)
JOIN redrive.message m ON m.queue_id = t.queue_id AND m.id = t.id
