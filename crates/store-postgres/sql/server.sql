-- Where a connection has arrived: the cluster and its timeline, null on a standby; the process that serves it, and since
-- when. A checkpoint would name the timeline only some time after a promotion; the log that is written to does at once.
SELECT CASE WHEN NOT pg_is_in_recovery() THEN (SELECT system_identifier::text FROM pg_control_system())
        || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) END,
    pg_backend_pid(),
    (SELECT (extract(epoch FROM backend_start) * 1000000)::bigint FROM pg_stat_activity WHERE pid = pg_backend_pid())
