-- What instances have cached of queues may be something that was lost.
UPDATE redrive.queue SET stamp = nextval('redrive.version')
