-- The versions of entries, held to the end of the transaction: $1 kinds, $2 names.
SELECT e.kind, e.name, e.version FROM unnest($1::text[], $2::text[]) AS t (kind, name)
JOIN redrive.entry e ON e.kind = t.kind AND e.name = t.name ORDER BY e.kind, e.name FOR UPDATE OF e
