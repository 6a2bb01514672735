DELETE FROM redrive.record WHERE log = $1 AND at < $2 RETURNING sequence
