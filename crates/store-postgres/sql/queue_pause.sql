-- Other pauses: $1 id, $2 pauses.
UPDATE redrive.queue SET pauses = $2, stamp = nextval('redrive.version')
WHERE id = $1 RETURNING id, name, created_at, version, stamp, config, pauses
