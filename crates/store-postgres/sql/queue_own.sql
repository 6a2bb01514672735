-- Nobody else writes to the queue until the transaction ends: $1 id.
SELECT 1 FROM redrive.queue WHERE id = $1 FOR UPDATE
