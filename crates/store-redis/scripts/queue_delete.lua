-- The end of a queue, without its messages or by force with them. What is left of it is nobody's any more and is cleared away by
-- `queue_clear`.
--
-- ARGV: time, by force.
local queue = open(1)
if not queue then return { 'gone' } end
local messages = redis.call('ZCARD', queue.at .. 'ids')
if messages > 0 and ARGV[2] ~= '1' then return { 'full', messages } end
redis.call('DEL', queue.key)
return { 'ok' }
