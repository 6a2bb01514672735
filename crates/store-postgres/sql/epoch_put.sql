-- A new epoch of lease ids: $1.
UPDATE redrive.shared SET value = $1 WHERE name = 'epoch'
