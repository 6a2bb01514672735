-- Fairness keys with a weight or a pause of their own: $1 queue, $2 keys, $3 weights, $4 paused until.
INSERT INTO redrive.key_setting (queue_id, key, weight, paused_until)
SELECT $1, key, weight, paused_until FROM unnest($2::text[], $3::int[], $4::bigint[]) AS k (key, weight, paused_until)
