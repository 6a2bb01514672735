-- Groups of dead messages whose errors are alike, the largest first. Nothing is changed.
--
-- ARGV: time, limit.
local queue = open(1)
if not queue then return { 'gone' } end
local answers = {}
local groups = redis.call('ZREVRANGE', queue.at .. 'groups', 0, ARGV[2] - 1, 'WITHSCORES')
for i = 1, #groups, 2 do
  local group = queue.at .. 'group:' .. groups[i]
  local first = redis.call('ZRANGE', group, 0, 0, 'WITHSCORES')
  local last = redis.call('ZREVRANGE', group, 0, 0, 'WITHSCORES')
  local line = last[1] and redis.call('HGET', queue.at .. 'p', last[1])
  if line then
    answers[#answers + 1] = { groups[i], groups[i + 1], first[2], last[2], parse(line).reason,
      redis.call('HGET', queue.at .. 'failures', last[1]) }
  end
end
return { 'ok', queue.now, answers }
