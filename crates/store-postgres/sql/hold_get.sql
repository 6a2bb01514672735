-- Who holds dedup keys: $1 queues, $2 keys.
SELECT h.queue_id, h.key, h.message, h.until FROM unnest($1::int[], $2::text[]) AS t (queue_id, key)
JOIN redrive.hold h ON h.queue_id = t.queue_id AND h.key = t.key
ORDER BY h.queue_id, h.key FOR UPDATE OF h
