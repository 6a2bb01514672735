-- A message sets out for a queue at another node: it is taken from where it stands, and nobody touches it until it has arrived. One that was
-- seen to be on its way there is sent on: somebody who brought it came no further.
--
-- ARGV: time, id, the queue it goes to, the line that was seen; without one it is a dead message that is to travel on, or one that set
-- out before.
local queue = open(1)
if not queue then return { 'gone' } end
local id = ARGV[2]
local line = redis.call('HGET', queue.at .. 'p', id)
if not line then
  redis.call('HDEL', queue.at .. 'leaving', id)
  return { 'n' }
end
local m = parse(line)
local capital = string.upper(m.phase)
if capital ~= m.phase then
  if ARGV[4] ~= '' and ARGV[4] ~= line then return { 'l' } end
  if ARGV[4] == '' and m.phase ~= 'x' then
    redis.call('HDEL', queue.at .. 'leaving', id)
    return { 'n' }
  end
  promote(queue)
  m = parse(redis.call('HGET', queue.at .. 'p', id))
  leave(queue, id, m)
  m.phase = string.upper(m.phase)
  line = line_of(m)
  redis.call('HSET', queue.at .. 'p', id, line)
  -- Every way has a number of its own: a message may go the same way twice.
  redis.call('HSET', queue.at .. 'leaving', id, ARGV[3] .. ' ' .. redis.call('HINCRBY', queue.key, 'departures', 1))
elseif ARGV[4] ~= '' then
  local to = string.match(redis.call('HGET', queue.at .. 'leaving', id) or '', '^(%S+) ')
  if ARGV[4] ~= line or to ~= ARGV[3] then return { 'n' } end
end
close(queue)
local way = string.match(redis.call('HGET', queue.at .. 'leaving', id) or '', ' (%d+)$') or '0'
local answer = { 'e', way, line, pair_of(queue, m.class), text(queue.leases), redis.call('HGET', queue.key, 'name'), redis.call('HGET', queue.at .. 'b', id) }
for letter in string.gmatch(m.kept, '%a') do
  if letter ~= 'w' and letter ~= 'u' then
    answer[#answer + 1] = letter
    answer[#answer + 1] = redis.call('HGET', queue.at .. KEPT[letter], id)
  end
end
return answer
