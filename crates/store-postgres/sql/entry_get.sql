SELECT name, version, value FROM redrive.entry WHERE kind = $1 AND name = $2
