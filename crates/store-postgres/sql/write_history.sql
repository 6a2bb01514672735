-- What happened to messages, besides their failures.
INSERT INTO redrive.history (no, last_error, checkpoint, death_reason, death_at, death_fingerprint,
    redriven_at, redriven_by, redriven_reason)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::smallint[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::text[], $9::text[])
ON CONFLICT (no) DO UPDATE SET last_error = excluded.last_error, checkpoint = excluded.checkpoint,
    death_reason = excluded.death_reason, death_at = excluded.death_at, death_fingerprint = excluded.death_fingerprint,
    redriven_at = excluded.redriven_at, redriven_by = excluded.redriven_by, redriven_reason = excluded.redriven_reason
