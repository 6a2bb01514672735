-- The database is on another server: $1 the last one, $2 this one. Answers a row to the first who says so.
UPDATE redrive.shared SET value = $2 WHERE name = 'server' AND value = $1 RETURNING name
