-- The numbers for messages that come by COPY: $1 now, null for the clock, $2 no earlier than; $3 queue and $4 its stamp, as the
-- caller knows it; $5 how many. The queue cannot be deleted before they are written.
WITH clock AS MATERIALIZED (
    SELECT greatest($2::bigint, coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)) AS now
),
queue AS MATERIALIZED (SELECT q.stamp FROM redrive.queue q WHERE q.id = $3::int FOR KEY SHARE)
SELECT clock.now, queue.stamp IS NOT DISTINCT FROM $4::bigint,
    ARRAY(SELECT nextval('redrive.place') FROM generate_series(1, $5::int))
FROM clock LEFT JOIN queue ON true
