-- Forgets pairs that no message has any more: $1 queue.
DELETE FROM redrive.class c WHERE c.queue_id = $1
    AND c.id NOT IN (SELECT DISTINCT m.class_id FROM redrive.message m WHERE m.queue_id = $1)
