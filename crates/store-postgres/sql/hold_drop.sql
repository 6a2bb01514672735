-- Lets dedup keys go that messages hold until they are done: $1 queues, $2 keys, $3 messages. Answers which.
DELETE FROM redrive.hold h USING unnest($1::int[], $2::text[], $3::uuid[]) AS t (queue_id, key, message)
WHERE h.queue_id = t.queue_id AND h.key = t.key AND h.message = t.message AND h.until IS NULL
RETURNING h.queue_id
