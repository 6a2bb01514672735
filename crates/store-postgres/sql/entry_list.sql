SELECT name, version, value FROM redrive.entry WHERE kind = $1 AND ($2::text IS NULL OR name > $2) ORDER BY name LIMIT $3
