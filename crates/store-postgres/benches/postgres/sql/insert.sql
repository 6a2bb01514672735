-- $1 payloads.
INSERT INTO bare.job (payload) SELECT unnest($1::bytea[])
