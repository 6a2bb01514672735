-- Messages of a queue that match, by id: the first of at most so many that are looked at. Conditions, direction and limits
-- are filled in.
SELECT {message m}, {story}{, content}
FROM (SELECT m.* FROM redrive.message m WHERE m.queue_id = $1 {range} ORDER BY m.id {direction} LIMIT {window}) m
{join content}
{join story m}
WHERE {matching}
ORDER BY m.id {direction} LIMIT {limit}
