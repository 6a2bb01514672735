-- Takes dedup keys: $1 queues, $2 keys, $3 messages, $4 until, null for until it is done, $5 now. Answers those that
-- were taken, and whether each is one more than before: a key whose window is over only changes hands.
INSERT INTO redrive.hold (queue_id, key, message, until)
SELECT queue_id, key, message, until FROM unnest($1::int[], $2::text[], $3::uuid[], $4::bigint[])
    AS t (queue_id, key, message, until) ORDER BY queue_id, key
ON CONFLICT (queue_id, key) DO UPDATE SET message = excluded.message, until = excluded.until WHERE hold.until <= $5
RETURNING queue_id, xmax = 0 AS new
