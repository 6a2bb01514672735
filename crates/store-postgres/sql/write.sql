-- Where messages stand: a row each, found by $1 queue and $2 id.
UPDATE redrive.message m
SET queue_id = w.to_queue, class_id = w.class_id, visible_at = w.visible_at,
    -- Without a place of its own it goes to the back.
    place = coalesce(w.place, nextval('redrive.place')), state = w.state,
    rank = w.rank, retry = w.retry, storied = w.storied, attempts = w.attempts, deliveries = w.deliveries,
    deliveries_before = w.deliveries_before, redrives = w.redrives, expires_at = w.expires_at, lease_id = w.lease_id,
    consumer = w.consumer, leased_at = w.leased_at, deadline = w.deadline, ended_at = w.ended_at,
    fingerprint = w.fingerprint, dead_reason = w.dead_reason, dedup_key = w.dedup_key,
    unique_key = CASE WHEN w.dedup_key IS NULL THEN NULL ELSE m.unique_key END,
    origin_queue = w.origin_queue, nacked = NULL
FROM unnest($1::int[], $2::uuid[], $3::int[], $4::int[], $5::bigint[], $6::bigint[], $7::smallint[], $8::smallint[],
    $9::boolean[], $10::boolean[], $11::int[], $12::int[], $13::int[], $14::int[], $15::bigint[], $16::bigint[],
    $17::text[], $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[], $22::smallint[], $23::text[], $24::text[])
    AS w (queue_id, id, to_queue, class_id, visible_at, place, state, rank, retry, storied, attempts, deliveries,
        deliveries_before, redrives, expires_at, lease_id, consumer, leased_at, deadline, ended_at, fingerprint,
        dead_reason, dedup_key, origin_queue)
WHERE m.queue_id = w.queue_id AND m.id = w.id
