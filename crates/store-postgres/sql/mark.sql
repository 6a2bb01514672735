-- Says that the transaction was committed, to whoever does not hear its answer: $1 mark. One that has written nothing
-- leaves none.
INSERT INTO redrive.mark (id) SELECT $1::uuid WHERE pg_current_xact_id_if_assigned() IS NOT NULL
