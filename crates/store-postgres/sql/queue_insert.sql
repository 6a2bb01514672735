-- A new queue: $1 name, $2 now, $3 config.
INSERT INTO redrive.queue (name, created_at, version, stamp, config, pauses)
VALUES ($1, $2, nextval('redrive.version'), nextval('redrive.version'), $3, '{}')
RETURNING id, name, created_at, version, stamp, config, pauses
