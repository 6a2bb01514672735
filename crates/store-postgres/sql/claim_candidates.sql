-- The first messages of the key `w.key` that a claim may hand out, at most as many as it is asked for. What has neither type
-- nor source stands only in the line of all messages; a line by type and source is there for everything else. Where the
-- key is that of the lane's mark, what is before the mark in its line is left out. Where one message is asked for, the walk has
-- found it, and the lines are only looked at again where somebody else holds it.
SELECT * FROM (
    SELECT * FROM (
        SELECT m.ctid AS row, m.id, m.size, m.rank, m.visible_at, m.place FROM redrive.message m
        WHERE least(w.n, w.turn + c.rounds * w.weight) = 1 AND (SELECT ids IS NULL FROM classes)
            AND m.ctid = w.row AND m.queue_id = $1 AND m.state = 1 AND m.retry = w.retry AND m.fairness_key = w.key
            AND (m.expires_at IS NULL OR m.expires_at > w.now)
            AND m.attempts < coalesce(m.max_attempts, $22::integer, 2147483647)
            AND ($23::integer IS NULL OR m.deliveries - m.deliveries_before < $23)
        {hold}
    ) the_first
    UNION ALL
    SELECT * FROM (
        SELECT m.ctid AS row, m.id, m.size, m.rank, m.visible_at, m.place FROM redrive.message m
        WHERE w.mark_rank >= 0 AND w.key = w.mark_key AND m.rank < w.mark_rank
            AND (SELECT ids IS NULL OR 0 = ANY (ids) FROM classes) AND (m.class_id = 0 OR (SELECT ids IS NULL FROM classes))
            AND m.queue_id = $1 AND m.state = 1 AND m.retry = w.retry AND m.fairness_key = w.key
            AND (m.expires_at IS NULL OR m.expires_at > w.now)
            AND m.attempts < coalesce(m.max_attempts, $22::integer, 2147483647)
            AND ($23::integer IS NULL OR m.deliveries - m.deliveries_before < $23)
        ORDER BY m.fairness_key, m.rank, m.visible_at, m.place
        LIMIT least(w.n, w.turn + c.rounds * w.weight)
        {hold}
    ) before_the_line
    UNION ALL
    SELECT * FROM (
        SELECT m.ctid AS row, m.id, m.size, m.rank, m.visible_at, m.place FROM redrive.message m
        WHERE (m.rank, m.visible_at, m.place) >= (
                CASE WHEN w.key = w.mark_key THEN w.mark_rank ELSE (-1)::smallint END,
                CASE WHEN w.key = w.mark_key THEN w.mark_at ELSE -1 END,
                CASE WHEN w.key = w.mark_key THEN w.mark_place ELSE -1 END)
            AND (SELECT ids IS NULL OR 0 = ANY (ids) FROM classes) AND (m.class_id = 0 OR (SELECT ids IS NULL FROM classes))
            AND m.queue_id = $1 AND m.state = 1 AND m.retry = w.retry AND m.fairness_key = w.key
            AND (m.expires_at IS NULL OR m.expires_at > w.now)
            AND m.attempts < coalesce(m.max_attempts, $22::integer, 2147483647)
            AND ($23::integer IS NULL OR m.deliveries - m.deliveries_before < $23)
        ORDER BY m.fairness_key, m.rank, m.visible_at, m.place
        LIMIT least(w.n, w.turn + c.rounds * w.weight)
        {hold}
    ) any_class
    UNION ALL
    SELECT one_class.* FROM classes CROSS JOIN LATERAL unnest(classes.ids) AS wanted (id) CROSS JOIN LATERAL (
        SELECT m.ctid AS row, m.id, m.size, m.rank, m.visible_at, m.place FROM redrive.message m
        WHERE m.queue_id = $1 AND m.class_id = wanted.id AND m.class_id <> 0 AND m.state = 1 AND m.retry = w.retry
            AND m.fairness_key = w.key
            AND (m.expires_at IS NULL OR m.expires_at > w.now)
            AND m.attempts < coalesce(m.max_attempts, $22::integer, 2147483647)
            AND ($23::integer IS NULL OR m.deliveries - m.deliveries_before < $23)
        ORDER BY m.fairness_key, m.rank, m.visible_at, m.place
        LIMIT least(w.n, w.turn + c.rounds * w.weight)
        {hold}
    ) one_class
) candidate
-- Lines by type and source are put in order afterwards.
LIMIT CASE WHEN (SELECT ids IS NULL FROM classes) THEN least(w.n, w.turn + c.rounds * w.weight) END
