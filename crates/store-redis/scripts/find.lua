-- What is overdue in a queue, or past its time to live, as the judge wants to see it.
--
-- ARGV: time, `deadlines` or `ttl`, limit.
local queue = open(1)
if not queue then return { 'gone' } end
local found = {}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', queue.at .. ARGV[2], '-inf', queue.now, 'LIMIT', 0, ARGV[3], 'WITHSCORES')) do
  found[#found + 1] = member
end
local answers = {}
for i = 1, #found, 2 do
  local id = ARGV[2] == 'ttl' and found[i] or message_of(found[i])
  local one = judged(queue, id)
  one[5] = found[i + 1]
  answers[#answers + 1] = one
end
return { 'ok', queue.now, queue.stamp, answers }
