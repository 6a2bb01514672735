-- How many messages a queue has: $1 id.
SELECT count(*) FROM redrive.message WHERE queue_id = $1
