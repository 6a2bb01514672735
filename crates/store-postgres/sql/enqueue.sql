-- nothing → ready | delayed. $1 now; then an array for each column.
WITH item AS MATERIALIZED (
    SELECT t.*, nextval('redrive.place') AS no FROM unnest($2::int[], $3::int[], $4::uuid[], $5::bigint[], $6::smallint[],
        $7::boolean[], $8::int[], $9::int[], $10::bigint[], $11::bigint[], $12::text[], $13::text[], $14::bytea[],
        $15::text[], $16::text[]) AS t (queue_id, class_id, id, visible_at, rank, unique_key, size, max_attempts,
        lease_timeout, expires_at, fairness_key, dedup_key, body, content_type, headers)
),
message AS (
    INSERT INTO redrive.message (queue_id, class_id, id, no, created_at, visible_at, place, state, rank, unique_key, size,
        max_attempts, lease_timeout, expires_at, fairness_key, dedup_key)
    SELECT queue_id, class_id, id, no, $1, visible_at, no, CASE WHEN visible_at > $1 THEN 0 ELSE 1 END, rank,
        unique_key, size, max_attempts, lease_timeout, expires_at, fairness_key, dedup_key
    FROM item ORDER BY no
)
INSERT INTO redrive.content (no, body, content_type, headers)
SELECT no, body, content_type, headers::jsonb FROM item
