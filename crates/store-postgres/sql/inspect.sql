-- What this server is, and whether it has the schema $1, which stands in quotation marks: nothing is changed.
SELECT current_setting('server_version'), pg_is_in_recovery(), current_setting('max_connections')::int,
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint, to_regclass($1 || '.migration') IS NOT NULL
