-- One at a time: $1 what, $2 of which queue. Held to the end of the transaction.
SELECT pg_advisory_xact_lock($1, $2)
