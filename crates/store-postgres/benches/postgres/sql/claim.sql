-- $1 how many.
UPDATE bare.job SET leased_until = now() + interval '30 seconds'
WHERE id = ANY (ARRAY(
    SELECT id FROM bare.job WHERE leased_until IS NULL ORDER BY id LIMIT $1::bigint FOR UPDATE SKIP LOCKED))
RETURNING id, payload
