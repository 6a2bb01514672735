-- Everything of a queue: $1 id.
WITH queue AS (DELETE FROM redrive.queue WHERE id = $1),
message AS (DELETE FROM redrive.message WHERE queue_id = $1 RETURNING no),
content AS (DELETE FROM redrive.content USING message WHERE content.no = message.no),
history AS (DELETE FROM redrive.history USING message WHERE history.no = message.no),
failure AS (DELETE FROM redrive.failure USING message WHERE failure.no = message.no),
hold AS (DELETE FROM redrive.hold WHERE queue_id = $1),
class AS (DELETE FROM redrive.class WHERE queue_id = $1),
key_setting AS (DELETE FROM redrive.key_setting WHERE queue_id = $1)
DELETE FROM redrive.tally WHERE queue_id = $1
