-- What happened, in numbers: an array for each column.
INSERT INTO redrive.tally (queue_id, waiting, leased, dead, done, holds, enqueue, lease, extend, ack, nack, release,
    expire, bury, lapse, reschedule, move, redrive, discard, moved_in, retained, died, duplicates)
SELECT $1::int, nullif(t[1], 0), nullif(t[2], 0), nullif(t[3], 0), nullif(t[4], 0), nullif(t[5], 0), nullif(t[6], 0),
    nullif(t[7], 0), nullif(t[8], 0), nullif(t[9], 0), nullif(t[10], 0), nullif(t[11], 0), nullif(t[12], 0),
    nullif(t[13], 0), nullif(t[14], 0), nullif(t[15], 0), nullif(t[16], 0), nullif(t[17], 0), nullif(t[18], 0),
    nullif(t[19], 0), nullif(t[20], 0), nullif(t[21], 0), nullif(t[22], 0)
FROM (SELECT $2::bigint[] AS t) t
