-- Ends what is left of a connection: $1 process, $2 when it began. Answers a row as long as there is something. Who waits
-- for a standby is not disturbed: the wait would end, and what is committed be seen without being safe.
SELECT CASE WHEN wait_event IS DISTINCT FROM 'SyncRep' THEN pg_terminate_backend(pid) END FROM pg_stat_activity
WHERE pid = $1 AND (extract(epoch FROM backend_start) * 1000000)::bigint = $2
