-- Records behind the last one: $1 log, $2 now, $3 values. The row of the log is held, so numbers become visible in order.
WITH log AS (
    INSERT INTO redrive.log (name, last) VALUES ($1, cardinality($3::bytea[]))
    ON CONFLICT (name) DO UPDATE SET last = log.last + cardinality($3::bytea[]) RETURNING last
)
INSERT INTO redrive.record (log, sequence, at, value)
SELECT $1, log.last - cardinality($3::bytea[]) + v.n, $2, v.value
FROM log, unnest($3::bytea[]) WITH ORDINALITY AS v (value, n)
RETURNING sequence
