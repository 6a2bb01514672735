-- Queues whose tally is long enough to be added up.
SELECT queue_id FROM redrive.tally GROUP BY queue_id HAVING count(*) > 100
