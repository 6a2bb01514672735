-- Whether a transaction was committed: $1 its mark. What is found is only answered once a commit of our own is as safe: the
-- transaction may be one whose wait for a standby was given up.
WITH found AS MATERIALIZED (SELECT at, repeated FROM redrive.mark WHERE id = $1),
safe AS (INSERT INTO redrive.mark (id) SELECT '00000000-0000-0000-0000-000000000000' FROM found)
SELECT at, repeated FROM found
