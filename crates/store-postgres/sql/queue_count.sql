SELECT count(*) FROM redrive.queue
