-- Adds up the rows of a queue: $1 id. Their sum stays what it is.
WITH gone AS (
    DELETE FROM redrive.tally WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM redrive.tally WHERE queue_id = $1 LIMIT 10000 FOR UPDATE SKIP LOCKED))
    RETURNING *
)
INSERT INTO redrive.tally
SELECT $1, sum(waiting), sum(leased), sum(dead), sum(done), sum(holds), sum(enqueue), sum(lease), sum(extend), sum(ack),
    sum(nack), sum(release), sum(expire), sum(bury), sum(lapse), sum(reschedule), sum(move), sum(redrive), sum(discard),
    sum(moved_in), sum(retained), sum(died), sum(duplicates)
FROM gone HAVING count(*) > 0
