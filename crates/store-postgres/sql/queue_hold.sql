-- The queues that a transaction writes to; they cannot be deleted before it ends. $1 names.
SELECT id, name, created_at, version, stamp, config, pauses FROM redrive.queue
WHERE name = ANY ($1) ORDER BY id FOR KEY SHARE
