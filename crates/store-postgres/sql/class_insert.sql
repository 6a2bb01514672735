-- A pair of type and source: $1 queue, $2 type, $3 source. What has neither is number 0.
INSERT INTO redrive.class (queue_id, id, type, source) OVERRIDING SYSTEM VALUE
SELECT $1, CASE WHEN $2 = '' AND $3 = '' THEN 0 ELSE nextval(pg_get_serial_sequence('redrive.class', 'id')) END, $2, $3
ON CONFLICT (queue_id, type, source) DO UPDATE SET type = excluded.type
RETURNING id
