-- Where the lines of a queue begin, and how much is in the way: $1 queue. Entries that lead to nothing are read to get there,
-- and the database counts what it reads.
WITH before AS MATERIALIZED (
    SELECT pg_stat_get_xact_tuples_returned('redrive.message_ready'::regclass) AS ready,
        pg_stat_get_xact_tuples_returned('redrive.message_leased'::regclass) AS leased
),
fresh AS MATERIALIZED (
    SELECT first.* FROM before CROSS JOIN LATERAL (
        SELECT m.fairness_key, m.rank, m.visible_at, m.place FROM redrive.message m
        WHERE before.ready >= 0 AND m.queue_id = $1 AND m.state = 1 AND m.retry = false
        ORDER BY m.fairness_key, m.rank, m.visible_at, m.place LIMIT 1
    ) first
),
retry AS MATERIALIZED (
    SELECT first.* FROM before CROSS JOIN LATERAL (
        SELECT m.fairness_key, m.rank, m.visible_at, m.place FROM redrive.message m
        WHERE before.ready >= 0 AND m.queue_id = $1 AND m.state = 1 AND m.retry = true
        ORDER BY m.fairness_key, m.rank, m.visible_at, m.place LIMIT 1
    ) first
),
lease AS MATERIALIZED (
    SELECT first.* FROM before CROSS JOIN LATERAL (
        SELECT m.deadline FROM redrive.message m
        WHERE before.leased >= 0 AND m.queue_id = $1 AND m.state = 2
        ORDER BY m.deadline, m.lease_id LIMIT 1
    ) first
),
found AS MATERIALIZED (
    SELECT fresh.fairness_key AS fresh_key, fresh.rank AS fresh_rank, fresh.visible_at AS fresh_at, fresh.place AS fresh_place,
        retry.fairness_key AS retry_key, retry.rank AS retry_rank, retry.visible_at AS retry_at, retry.place AS retry_place,
        lease.deadline, before.ready, before.leased
    FROM before LEFT JOIN fresh ON true LEFT JOIN retry ON true LEFT JOIN lease ON true
)
SELECT found.fresh_key, found.fresh_rank, found.fresh_at, found.fresh_place,
    found.retry_key, found.retry_rank, found.retry_at, found.retry_place, found.deadline,
    pg_stat_get_xact_tuples_returned('redrive.message_ready'::regclass) - found.ready,
    pg_stat_get_xact_tuples_returned('redrive.message_leased'::regclass) - found.leased
FROM found
