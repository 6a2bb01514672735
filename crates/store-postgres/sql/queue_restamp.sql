-- What instances have cached of a queue is not right any more: $1 id.
UPDATE redrive.queue SET stamp = nextval('redrive.version') WHERE id = $1
