-- A queue at this moment. Nothing is changed but what is known of its lines; where that takes more than a step, it is to be asked again.
local queue = open(1)
if not queue then return { 'gone' } end

local function size(name)
  return redis.call('ZCARD', queue.at .. name)
end

local oldest
local function older(id)
  local line = id and redis.call('HGET', queue.at .. 'p', id)
  if line then oldest = math.min(oldest or math.huge, parse(line).visible) end
end
local entry = head_at(queue, 0, 1000)
if entry == true then return { 'again' } end
older(entry and string.match(entry, '^%d+:(.*)$'))
older(redis.call('ZRANGE', queue.at .. 'over', 0, 0)[1])
local due = redis.call('ZRANGEBYSCORE', queue.at .. 'delayed', '-inf', queue.now, 'WITHSCORES', 'LIMIT', 0, 1)[2]
if due then oldest = math.min(oldest or math.huge, tonumber(due)) end

return { 'ok', queue.now, redis.call('HGETALL', queue.key), {
  size('ids'), size('deadlines'), size('dead'), size('done'),
  redis.call('ZCOUNT', queue.at .. 'delayed', '(' .. text(queue.now), '+inf'),
  redis.call('ZCOUNT', queue.at .. 'deadlines', '-inf', queue.now),
  redis.call('SCARD', queue.at .. 'retries'),
  redis.call('HLEN', queue.at .. 'dedup') - redis.call('ZCOUNT', queue.at .. 'dedup:until', '-inf', queue.now),
}, oldest and text(oldest) or '' }
