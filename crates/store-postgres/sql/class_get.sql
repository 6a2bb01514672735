-- The pairs of type and source of a queue: $1 id.
SELECT id, type, source FROM redrive.class WHERE queue_id = $1
