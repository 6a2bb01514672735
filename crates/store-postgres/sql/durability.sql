-- What a commit means on this server, as this connection would make one. Who may not look at the standbys sees no state.
SELECT current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on',
    current_setting('synchronous_commit'), current_setting('synchronous_standby_names') <> '',
    EXISTS (SELECT FROM pg_stat_replication WHERE coalesce(sync_state, 'sync') IN ('sync', 'quorum'))
