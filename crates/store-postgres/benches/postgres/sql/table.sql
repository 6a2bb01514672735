-- What somebody writes who needs a queue this afternoon: a table, and an index that holds what is ready.
CREATE SCHEMA bare;
CREATE TABLE bare.job (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    leased_until timestamptz,
    payload bytea NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0);
CREATE INDEX job_ready ON bare.job (id) WHERE leased_until IS NULL;
-- Bodies are not compressed there, so they are not here.
ALTER TABLE bare.job ALTER COLUMN payload SET STORAGE EXTERNAL;
