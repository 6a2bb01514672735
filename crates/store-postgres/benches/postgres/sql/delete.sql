-- $1 ids.
DELETE FROM bare.job WHERE id = ANY ($1::bigint[])
