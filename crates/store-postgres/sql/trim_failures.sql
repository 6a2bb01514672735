-- Attempts that make room for later ones: $1 messages, $2 how many are kept.
DELETE FROM redrive.failure f USING unnest($1::bigint[]) AS t (no)
WHERE f.no = t.no AND f.place <= (
    SELECT o.place FROM redrive.failure o WHERE o.no = t.no ORDER BY o.place DESC OFFSET $2 LIMIT 1)
