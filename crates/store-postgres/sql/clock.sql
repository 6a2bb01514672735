-- What time it is: $1 now, null for the clock, $2 no earlier than.
SELECT greatest($2::bigint, coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
