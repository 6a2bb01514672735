-- lease: ready → leased, for as many messages as are asked for.
--
-- Fairness costs with the messages that are claimed, not with the keys there are: each lane's keys are walked in a circle
-- from where the last claim of this instance ended, and each gives a turn of as many messages as its weight. A key whose
-- messages all came after the circle began is served only as often as one that was there before: ever new keys would
-- starve those behind them.
--
--  $1 queue            $2 now, null for the clock  $3 no earlier than  $4 stamp of the queue that the caller knows
--  $5 whether what is overdue, too old or due must be dealt with first
--  $6 how many         $7 how many retries among them where both lanes have work
--  $8 serve fresh      $9 serve retries
--  $10 fresh: from this key on    $11 itself included    $12 what is left of its turn, 0 for all of it    $13 circle
--  $14 retry: from this key on    $15 itself included    $16 what is left of its turn, 0 for all of it    $17 circle
--  $18 consumers of the first, the second and so on, the last one for all that follow
--  $19 lease time, null for message and queue   $20 the queue's   $21 its longest
--  $22 its cap on attempts, null for none   $23 its cap on deliveries   $24 its cap on retries in flight
--  $25 epoch of lease ids, shifted   $26 most bytes   $27 types, $28 sources, null for all
--  $29 how many new keys may be served in the fresh lane, $30 in the retry lane
--  $31 whether any key has a weight or a pause of its own
--  $32 key, $33 rank, $34 time and $35 place of the mark of the fresh lane, $36 to $39 of the retry lane, rank -1 for none: of
--  the messages with that key and rank, those before it are gone, and only their entries may be left (`behind.rs`)
--  $40 no lease ends at this time or earlier
WITH RECURSIVE
clock AS MATERIALIZED (
    SELECT greatest($3::bigint, coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)) AS now
),
guard AS MATERIALIZED (
    SELECT now, q.stamp,
        EXISTS (SELECT FROM redrive.message m WHERE m.queue_id = $1 AND m.state = 2 AND m.deadline <= now
            AND m.deadline > $40::bigint)
        OR EXISTS (SELECT FROM redrive.message m
            WHERE m.queue_id = $1 AND m.state < 2 AND m.expires_at IS NOT NULL AND m.expires_at <= now)
        OR EXISTS (SELECT FROM redrive.message m
            WHERE m.queue_id = $1 AND m.state = 0 AND m.visible_at <= now) AS due
    FROM clock LEFT JOIN redrive.queue q ON q.id = $1
),
-- Which types and sources, by number; null for all.
classes AS MATERIALIZED (
    SELECT CASE WHEN $27::text[] IS NULL AND $28::text[] IS NULL THEN NULL ELSE ARRAY(
        SELECT c.id FROM redrive.class c WHERE c.queue_id = $1
            AND ($27 IS NULL OR c.type = ANY ($27)) AND ($28 IS NULL OR c.source = ANY ($28))) END AS ids
),
has AS MATERIALIZED (
    SELECT now,
        $8::boolean AND (EXISTS (SELECT FROM redrive.message m
                WHERE m.queue_id = $1 AND m.state = 1 AND NOT m.retry
                    AND (m.fairness_key, m.rank, m.visible_at, m.place) >= ($32::text, $33::smallint, $34::bigint, $35::bigint))
            OR EXISTS (SELECT FROM redrive.message m
                WHERE $33 >= 0 AND m.queue_id = $1 AND m.state = 1 AND NOT m.retry AND m.fairness_key < $32)
            OR EXISTS (SELECT FROM redrive.message m
                WHERE $33 >= 0 AND m.queue_id = $1 AND m.state = 1 AND NOT m.retry AND m.fairness_key = $32 AND m.rank < $33)) AS fresh,
        $9::boolean AND (EXISTS (SELECT FROM redrive.message m
                WHERE m.queue_id = $1 AND m.state = 1 AND m.retry
                    AND (m.fairness_key, m.rank, m.visible_at, m.place) >= ($36::text, $37::smallint, $38::bigint, $39::bigint))
            OR EXISTS (SELECT FROM redrive.message m
                WHERE $37 >= 0 AND m.queue_id = $1 AND m.state = 1 AND m.retry AND m.fairness_key < $36)
            OR EXISTS (SELECT FROM redrive.message m
                WHERE $37 >= 0 AND m.queue_id = $1 AND m.state = 1 AND m.retry AND m.fairness_key = $36 AND m.rank < $37)) AS retry,
        CASE WHEN $24::integer IS NULL THEN 2147483647 ELSE greatest(0, $24::integer - (
            SELECT count(*) FROM redrive.message m WHERE m.queue_id = $1 AND m.state = 2 AND m.retry)::integer)
        END AS retries_left
    FROM guard WHERE stamp = $4 AND NOT ($5::boolean AND due)
),
lane AS MATERIALIZED (
    SELECT false AS retry, $10::text COLLATE "C" AS pos, $11::boolean AS inclusive, $12::integer AS left_of_turn,
        $13::bigint AS circle, $29::integer AS credit, now,
        $32 COLLATE "C" AS mark_key, $33 AS mark_rank, $34 AS mark_at, $35 AS mark_place,
        CASE WHEN retry AND retries_left > 0 THEN $6::integer - least($7::integer, retries_left) ELSE $6::integer END AS n
    FROM has WHERE fresh
    UNION ALL
    SELECT true, $14::text COLLATE "C", $15::boolean, $16::integer, $17::bigint, $30::integer, now,
        $36, $37, $38, $39,
        least(retries_left, CASE WHEN fresh THEN $7 ELSE $6::integer END)
    FROM has WHERE retry
),
-- The keys are walked by the line of all messages, or by those of the types and sources that are asked for: a rare type is
-- not looked for key by key. `next` is the smallest key that the walk has not come to.
walk AS (
    SELECT l.retry, l.n, l.pos, l.inclusive, l.circle, l.now, 0 AS step, 0 AS acc, 0 AS turn, 0 AS weight,
        l.credit, NULL::text COLLATE "C" AS key, NULL::tid AS row,
        (CASE WHEN l.inclusive THEN l.pos ELSE l.pos || E'\x01' END) COLLATE "C" AS next,
        false AS wrapped, l.left_of_turn, ids, ids IS NULL OR 0 = ANY (ids) AS all_lines,
        l.mark_key, l.mark_rank, l.mark_at, l.mark_place
    FROM lane l CROSS JOIN classes WHERE l.n > 0
    UNION ALL
    SELECT w.retry, w.n, w.pos, w.inclusive, w.circle, w.now, w.step + 1,
        w.acc + least(w.n, t.turn), t.turn, t.weight,
        CASE WHEN t.turn = 0 THEN w.credit WHEN k.wrapped THEN 0 WHEN t.is_new THEN w.credit - 1 ELSE w.credit + 1 END,
        k.key, k.row, (k.key || E'\x01') COLLATE "C", k.wrapped, w.left_of_turn, w.ids, w.all_lines,
        w.mark_key, w.mark_rank, w.mark_at, w.mark_place
    FROM walk w
    CROSS JOIN LATERAL (
        -- The first message of the next key: before the line of the mark, and from the mark on.
        (SELECT m.fairness_key AS key, m.rank, m.place, m.ctid AS row, w.wrapped FROM redrive.message m
            WHERE w.all_lines AND w.mark_rank >= 0 AND w.next <= w.mark_key AND m.queue_id = $1 AND m.state = 1
                AND m.retry = w.retry AND m.fairness_key >= w.next AND m.fairness_key < w.mark_key
            ORDER BY m.fairness_key, m.rank, m.visible_at, m.place LIMIT 1)
        UNION ALL
        (SELECT m.fairness_key, m.rank, m.place, m.ctid, w.wrapped FROM redrive.message m
            WHERE w.all_lines AND w.mark_rank >= 0 AND w.next <= w.mark_key AND m.queue_id = $1 AND m.state = 1
                AND m.retry = w.retry AND m.fairness_key = w.mark_key AND m.rank < w.mark_rank
            ORDER BY m.fairness_key, m.rank, m.visible_at, m.place LIMIT 1)
        UNION ALL
        (SELECT m.fairness_key, m.rank, m.place, m.ctid, w.wrapped FROM redrive.message m
            WHERE w.all_lines AND m.queue_id = $1 AND m.state = 1 AND m.retry = w.retry
                AND (m.fairness_key, m.rank, m.visible_at, m.place) >= (
                    CASE WHEN w.next <= w.mark_key THEN w.mark_key ELSE w.next END,
                    CASE WHEN w.next <= w.mark_key THEN w.mark_rank ELSE (-1)::smallint END,
                    CASE WHEN w.next <= w.mark_key THEN w.mark_at ELSE -1 END,
                    CASE WHEN w.next <= w.mark_key THEN w.mark_place ELSE -1 END)
            ORDER BY m.fairness_key, m.rank, m.visible_at, m.place LIMIT 1)
        UNION ALL
        (SELECT line.*, w.wrapped FROM unnest(w.ids) AS wanted (id) CROSS JOIN LATERAL (
                SELECT m.fairness_key AS key, m.rank, m.place, m.ctid FROM redrive.message m
                WHERE m.queue_id = $1 AND m.class_id = wanted.id AND m.class_id <> 0 AND m.state = 1
                    AND m.retry = w.retry AND m.fairness_key >= w.next
                ORDER BY m.fairness_key, m.rank, m.visible_at, m.place LIMIT 1) line
            WHERE NOT w.all_lines ORDER BY line.key LIMIT 1)
        UNION ALL
        -- Round the corner, where there is nothing further on.
        (SELECT m.fairness_key, m.rank, m.place, m.ctid, true FROM redrive.message m
            WHERE w.all_lines AND NOT w.wrapped AND w.mark_rank >= 0 AND m.queue_id = $1 AND m.state = 1
                AND m.retry = w.retry AND m.fairness_key < w.mark_key
            ORDER BY m.fairness_key, m.rank, m.visible_at, m.place LIMIT 1)
        UNION ALL
        (SELECT m.fairness_key, m.rank, m.place, m.ctid, true FROM redrive.message m
            WHERE w.all_lines AND NOT w.wrapped AND w.mark_rank >= 0 AND m.queue_id = $1 AND m.state = 1
                AND m.retry = w.retry AND m.fairness_key = w.mark_key AND m.rank < w.mark_rank
            ORDER BY m.fairness_key, m.rank, m.visible_at, m.place LIMIT 1)
        UNION ALL
        (SELECT m.fairness_key, m.rank, m.place, m.ctid, true FROM redrive.message m
            WHERE w.all_lines AND NOT w.wrapped AND m.queue_id = $1 AND m.state = 1 AND m.retry = w.retry
                AND (m.fairness_key, m.rank, m.visible_at, m.place) >= (w.mark_key, w.mark_rank, w.mark_at, w.mark_place)
            ORDER BY m.fairness_key, m.rank, m.visible_at, m.place LIMIT 1)
        UNION ALL
        (SELECT line.*, true FROM unnest(w.ids) AS wanted (id) CROSS JOIN LATERAL (
                SELECT m.fairness_key AS key, m.rank, m.place, m.ctid FROM redrive.message m
                WHERE m.queue_id = $1 AND m.class_id = wanted.id AND m.class_id <> 0 AND m.state = 1
                    AND m.retry = w.retry
                ORDER BY m.fairness_key, m.rank, m.visible_at, m.place LIMIT 1) line
            WHERE NOT w.all_lines AND NOT w.wrapped ORDER BY line.key LIMIT 1)
        LIMIT 1
    ) k
    LEFT JOIN LATERAL (
        SELECT s.weight, s.paused_until FROM redrive.key_setting s
        WHERE $31::boolean AND s.queue_id = $1 AND s.key = k.key
    ) s ON true
    CROSS JOIN LATERAL (
        -- What a turn of it is; nothing where it is paused or has nothing that is asked for.
        SELECT CASE WHEN s.paused_until > w.now THEN 0
            WHEN w.all_lines AND w.ids IS NOT NULL AND NOT EXISTS (
                SELECT FROM redrive.message m
                WHERE m.queue_id = $1 AND m.class_id = ANY (w.ids) AND m.state = 1
                    AND m.retry = w.retry AND m.fairness_key = k.key) THEN 0
            ELSE coalesce(s.weight, 1) END AS weight
        OFFSET 0 -- worked out once, however often it is named
    ) v
    CROSS JOIN LATERAL (
        SELECT NOT k.wrapped AND k.place > w.circle AND NOT EXISTS (
            SELECT FROM generate_series(CASE WHEN w.all_lines THEN k.rank + 1 ELSE 0 END, 9) AS line (rank) CROSS JOIN LATERAL (
                SELECT m.place FROM redrive.message m
                WHERE m.queue_id = $1 AND m.state = 1 AND m.retry = w.retry AND m.fairness_key = k.key
                    AND m.rank = line.rank
                ORDER BY m.visible_at, m.place LIMIT 1
            ) first WHERE first.place <= w.circle) AS is_new
        OFFSET 0
    ) n
    CROSS JOIN LATERAL (
        SELECT v.weight, n.is_new, CASE
            WHEN n.is_new AND w.credit <= 0 THEN 0
            WHEN w.step = 0 AND w.inclusive AND w.left_of_turn > 0 AND k.key = w.pos
                THEN least(w.left_of_turn, v.weight)
            ELSE v.weight
        END AS turn
        OFFSET 0
    ) t
    WHERE w.acc < w.n AND w.step < w.n + 64
        AND (NOT k.wrapped OR k.key < w.pos OR (k.key = w.pos AND NOT w.inclusive))
),
-- How far each lane's walk came, and whether that was all the way round: then what is still wanted is shared out over
-- further rounds.
came AS MATERIALIZED (
    SELECT w.retry, max(w.step) AS steps, bool_or(w.acc >= w.n) AS enough,
        (array_agg(w.key ORDER BY w.step DESC))[1] AS last_key,
        CASE WHEN bool_or(w.acc >= w.n) OR max(w.step) >= max(w.n) + 64 THEN 0
            ELSE ceil((max(w.n) - max(w.acc))::numeric
                / greatest(1, sum(w.weight)))::integer
        END AS rounds
    FROM walk w GROUP BY w.retry
),
pick AS MATERIALIZED (
    SELECT w.retry, w.n, w.step, w.turn, w.weight, w.wrapped, w.credit, m.row, m.id, m.size,
        least(w.n, w.turn + c.rounds * w.weight) AS quota,
        row_number() OVER (PARTITION BY w.retry, w.step ORDER BY m.rank, m.visible_at, m.place)::integer - 1 AS i
    FROM walk w
    JOIN came c ON c.retry = w.retry
    CROSS JOIN LATERAL (
        {candidates, held}
    ) m
    WHERE w.weight > 0
),
ranked AS MATERIALIZED (
    SELECT p.*, CASE WHEN p.i < p.turn THEN 0 ELSE 1 + (p.i - p.turn) / p.weight END AS round,
        row_number() OVER (PARTITION BY p.retry
            ORDER BY CASE WHEN p.i < p.turn THEN 0 ELSE 1 + (p.i - p.turn) / p.weight END, p.step, p.i) AS nth
    FROM pick p WHERE p.i < p.quota
),
ordered AS MATERIALIZED (
    SELECT r.*, sum(r.size::bigint) OVER (ORDER BY (r.nth - 0.5) / r.n, r.retry ROWS UNBOUNDED PRECEDING) AS bytes,
        row_number() OVER (ORDER BY (r.nth - 0.5) / r.n, r.retry) AS ord
    FROM ranked r WHERE r.nth <= r.n
),
chosen AS MATERIALIZED (
    SELECT o.*, $25::bigint + nextval('redrive.token') AS lease_id
    FROM (SELECT * FROM ordered WHERE bytes <= $26::bigint OR ord = 1 ORDER BY ord) o
),
claimed AS (
    UPDATE redrive.message m
    SET state = 2, attempts = m.attempts + 1, deliveries = m.deliveries + 1,
        lease_id = c.lease_id, consumer = ($18::text[])[least(c.ord, cardinality($18::text[]))], leased_at = guard.now,
        deadline = least(253402300799999,
            guard.now + least(coalesce($19::bigint, m.lease_timeout, $20::bigint), $21::bigint))
    FROM chosen c, guard
    -- It is held, so it is still where it was found; but for one that was changed just before, and is found the next time.
    WHERE m.ctid = c.row AND m.queue_id = $1
    RETURNING m.*, c.ord, c.wrapped OR c.round > 0 AS new_circle, c.weight, c.credit
),
counted AS (
    INSERT INTO redrive.tally (queue_id, waiting, leased, lease)
    SELECT $1, -count(*), count(*), count(*) FROM claimed HAVING count(*) > 0
),
-- Whether something is left that this call could have had: what others hold at this moment, or what weighs too much.
missed AS MATERIALIZED (
    SELECT EXISTS (
        SELECT FROM walk w
        JOIN came c ON c.retry = w.retry
        CROSS JOIN LATERAL (
            {candidates}
        ) m
        WHERE (SELECT count(*) FROM chosen) < $6 AND w.weight > 0
            AND NOT EXISTS (SELECT FROM chosen WHERE chosen.id = m.id)
    ) AS missed,
    -- Whether a key gave all that it was asked for, so that it may have more. (A walk that ended because the turns it came
    -- by were enough may have been wrong: a turn is what a key may give, not what it has.)
    EXISTS (SELECT FROM pick p WHERE NOT p.retry AND p.i = p.quota - 1) AS fresh_gave_all,
    EXISTS (SELECT FROM pick p WHERE p.retry AND p.i = p.quota - 1) AS retry_gave_all
)
SELECT g.now, g.stamp, g.due, h.fresh AND h.retry AS contested, missed.missed,
    h.fresh, h.retries_left,
    (SELECT last_value FROM redrive.place) AS circle,
    fresh.n AS fresh_n, fresh_came.last_key AS fresh_end, fresh_came.steps >= fresh.n + 64 AS fresh_cut,
    fresh_came.steps >= fresh.n + 64 OR fresh_came.enough OR missed.fresh_gave_all AS fresh_more,
    retry.n AS retry_n, retry_came.last_key AS retry_end, retry_came.steps >= retry.n + 64 AS retry_cut,
    retry_came.steps >= retry.n + 64 OR retry_came.enough OR missed.retry_gave_all AS retry_more,
    c.new_circle, c.weight, c.credit, c.retry,
    {message c}, {story}, {content}
FROM guard g
CROSS JOIN missed
LEFT JOIN has h ON true
LEFT JOIN lane fresh ON NOT fresh.retry
LEFT JOIN lane retry ON retry.retry
LEFT JOIN came fresh_came ON NOT fresh_came.retry
LEFT JOIN came retry_came ON retry_came.retry
LEFT JOIN claimed c ON true
LEFT JOIN redrive.content ON content.no = c.no
{join story c}
ORDER BY c.ord
