-- How many messages are alike: $1 id, $2 now, $3 by type, $4 by source, $5 by key, $6 how many rows.
SELECT state::smallint, type, source, key, sum(messages)::bigint AS messages FROM (
    SELECT CASE WHEN m.state = 0 AND m.visible_at <= $2 THEN 1 ELSE m.state END AS state,
        CASE WHEN $3::boolean THEN c.type END AS type, CASE WHEN $4::boolean THEN c.source END AS source,
        m.key, m.messages
    FROM (
        SELECT state, CASE WHEN state = 0 THEN visible_at END AS visible_at, class_id,
            CASE WHEN $5::boolean THEN fairness_key END AS key, count(*) AS messages
        FROM redrive.message WHERE queue_id = $1 GROUP BY 1, 2, 3, 4
    ) m JOIN redrive.class c ON c.queue_id = $1 AND c.id = m.class_id
) m
GROUP BY 1, 2, 3, 4 ORDER BY messages DESC, state, type NULLS FIRST, source NULLS FIRST, key NULLS FIRST LIMIT $6
