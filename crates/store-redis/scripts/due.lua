-- When time will next change something in a queue by itself. Nothing is changed.
local queue = open(1)
if not queue then return { 'gone' } end

local function first(name, from)
  return redis.call('ZRANGEBYSCORE', queue.at .. name, from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or ''
end

return { 'ok', queue.now, queue.stamp, first('delayed', '(' .. text(queue.now)), first('deadlines', '-inf'), first('ttl', '-inf') }
