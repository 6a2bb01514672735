-- The server that the database was last on, and the epoch of lease ids.
SELECT (SELECT value FROM redrive.shared WHERE name = 'server'), (SELECT value FROM redrive.shared WHERE name = 'epoch')
