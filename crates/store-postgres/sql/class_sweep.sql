-- Forgets pairs that no message has any more: $1 queue, $2 those that a message is about to have.
DELETE FROM redrive.class c WHERE c.queue_id = $1 AND c.id <> ALL ($2)
    AND c.id NOT IN (SELECT DISTINCT m.class_id FROM redrive.message m WHERE m.queue_id = $1)
