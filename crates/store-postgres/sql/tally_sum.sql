-- What a queue has counted: $1 id.
SELECT array[coalesce(sum(waiting), 0), coalesce(sum(leased), 0), coalesce(sum(dead), 0), coalesce(sum(done), 0),
    coalesce(sum(holds), 0), coalesce(sum(enqueue), 0), coalesce(sum(lease), 0), coalesce(sum(extend), 0),
    coalesce(sum(ack), 0), coalesce(sum(nack), 0), coalesce(sum(release), 0), coalesce(sum(expire), 0),
    coalesce(sum(bury), 0), coalesce(sum(lapse), 0), coalesce(sum(reschedule), 0), coalesce(sum(move), 0),
    coalesce(sum(redrive), 0), coalesce(sum(discard), 0), coalesce(sum(moved_in), 0), coalesce(sum(retained), 0),
    coalesce(sum(died), 0), coalesce(sum(duplicates), 0)]::bigint[]
FROM redrive.tally WHERE queue_id = $1
