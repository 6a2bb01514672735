INSERT INTO redrive.entry (kind, name, version, value) VALUES ($1, $2, nextval('redrive.version'), $3) RETURNING version
