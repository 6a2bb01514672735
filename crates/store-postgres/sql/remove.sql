-- Messages that are gone: $1 queues, $2 ids.
WITH gone AS (
    DELETE FROM redrive.message m USING unnest($1::int[], $2::uuid[]) AS t (queue_id, id)
    WHERE m.queue_id = t.queue_id AND m.id = t.id RETURNING m.no, m.storied
),
content AS (DELETE FROM redrive.content c USING gone WHERE c.no = gone.no),
history AS (DELETE FROM redrive.history h USING gone WHERE gone.storied AND h.no = gone.no)
DELETE FROM redrive.failure f USING gone WHERE gone.storied AND f.no = gone.no
