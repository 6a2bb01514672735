-- A queue, its cached form included: $1 name.
SELECT id, name, created_at, version, stamp, config, pauses FROM redrive.queue WHERE name = $1
