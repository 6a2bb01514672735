-- Where a look at so many messages ended; nothing where there are fewer.
SELECT m.id FROM redrive.message m WHERE m.queue_id = $1 {range} ORDER BY m.id {direction} OFFSET {window} - 1 LIMIT 1
