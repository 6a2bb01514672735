-- Queues by name: $1 after, null for the first, $2 how many.
SELECT id, name, created_at, version, stamp, config, pauses FROM redrive.queue
WHERE $1::text IS NULL OR name > $1 ORDER BY name LIMIT $2
