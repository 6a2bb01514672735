-- Attempts that failed.
INSERT INTO redrive.failure (no, place, attempt, cause, rule, leased_at, ended_at, delay, consumer, error)
SELECT no, nextval('redrive.place'), attempt, cause, rule, leased_at, ended_at, delay, consumer, error
FROM unnest($1::bigint[], $2::int[], $3::smallint[], $4::smallint[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::text[], $9::text[]) AS f (no, attempt, cause, rule, leased_at, ended_at, delay, consumer, error)
