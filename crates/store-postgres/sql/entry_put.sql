UPDATE redrive.entry SET version = nextval('redrive.version'), value = $3 WHERE kind = $1 AND name = $2 RETURNING version
