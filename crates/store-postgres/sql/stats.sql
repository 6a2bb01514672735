-- A queue at one moment: $1 id, $2 now. What is ready is what waits and is not delayed; the oldest of it is the first of
-- one of the lines, so the lines are walked and not the messages.
WITH RECURSIVE line AS (
    (SELECT m.retry, m.fairness_key, m.rank, m.visible_at FROM redrive.message m
        WHERE m.queue_id = $1 AND m.state = 1 ORDER BY m.retry, m.fairness_key, m.rank, m.visible_at LIMIT 1)
    UNION ALL
    SELECT next.* FROM line CROSS JOIN LATERAL (
        SELECT m.retry, m.fairness_key, m.rank, m.visible_at FROM redrive.message m
        WHERE m.queue_id = $1 AND m.state = 1
            AND (m.retry, m.fairness_key, m.rank) > (line.retry, line.fairness_key, line.rank)
        ORDER BY m.retry, m.fairness_key, m.rank, m.visible_at LIMIT 1
    ) next
)
SELECT
    (SELECT count(*) FROM redrive.message m WHERE m.queue_id = $1 AND m.state = 0 AND m.visible_at > $2) AS delayed,
    (SELECT count(*) FROM redrive.message m WHERE m.queue_id = $1 AND m.state = 2 AND m.deadline <= $2) AS overdue,
    (SELECT count(*) FROM redrive.message m WHERE m.queue_id = $1 AND m.state = 2 AND m.retry) AS retries,
    (SELECT count(*) FROM redrive.hold h WHERE h.queue_id = $1 AND h.until <= $2) AS lapsed_holds,
    least((SELECT min(visible_at) FROM line),
        (SELECT m.visible_at FROM redrive.message m WHERE m.queue_id = $1 AND m.state = 0 AND m.visible_at <= $2
            ORDER BY m.visible_at LIMIT 1)) AS oldest_ready,
    (SELECT array[coalesce(sum(waiting), 0), coalesce(sum(leased), 0), coalesce(sum(dead), 0), coalesce(sum(done), 0),
        coalesce(sum(holds), 0), coalesce(sum(enqueue), 0), coalesce(sum(lease), 0), coalesce(sum(extend), 0),
        coalesce(sum(ack), 0), coalesce(sum(nack), 0), coalesce(sum(release), 0), coalesce(sum(expire), 0),
        coalesce(sum(bury), 0), coalesce(sum(lapse), 0), coalesce(sum(reschedule), 0), coalesce(sum(move), 0),
        coalesce(sum(redrive), 0), coalesce(sum(discard), 0), coalesce(sum(moved_in), 0), coalesce(sum(retained), 0),
        coalesce(sum(died), 0), coalesce(sum(duplicates), 0)]::bigint[]
    FROM redrive.tally WHERE queue_id = $1) AS tally
