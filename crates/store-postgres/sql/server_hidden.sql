-- The same where nobody may know the cluster and its timeline: since when the server runs.
SELECT CASE WHEN NOT pg_is_in_recovery() THEN 'since ' || extract(epoch FROM pg_postmaster_start_time())::text END,
    pg_backend_pid(),
    (SELECT (extract(epoch FROM backend_start) * 1000000)::bigint FROM pg_stat_activity WHERE pid = pg_backend_pid())
