-- Another configuration: $1 id, $2 config.
UPDATE redrive.queue SET config = $2, version = nextval('redrive.version'), stamp = nextval('redrive.version')
WHERE id = $1 RETURNING id, name, created_at, version, stamp, config, pauses
