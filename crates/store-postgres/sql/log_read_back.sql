SELECT sequence, at, value FROM redrive.record WHERE log = $1 AND sequence < $2 ORDER BY sequence DESC LIMIT $3
