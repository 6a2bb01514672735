-- retain: done | dead → gone, for messages beyond the queue's retention, the oldest first. Consumers that have held nothing for an hour
-- are forgotten, too, and dedup keys whose time is up.
--
-- ARGV: time, stamp, limit, age and number of those done that are kept, age and number of the dead; empty is without end.
local IDLE_MS = 3600000
local queue = open(1)
if not queue then return { 'gone' } end
if queue.stamp ~= ARGV[2] then return { 'stale' } end
local limit = tonumber(ARGV[3])

local function beyond(name, age, most)
  local key = queue.at .. name
  local number = 0
  if most then number = math.max(number, redis.call('ZCARD', key) - most) end
  if age then number = math.max(number, redis.call('ZCOUNT', key, '-inf', queue.now - age)) end
  number = math.min(number, limit)
  if number == 0 then return {} end
  local found = {}
  local rows = redis.call('ZRANGE', key, 0, number - 1, 'WITHSCORES')
  for i = 1, #rows, 2 do found[#found + 1] = { rows[i], tonumber(rows[i + 1]) } end
  return found
end

local found = beyond('done', tonumber(ARGV[4]), tonumber(ARGV[5]))
for _, one in ipairs(beyond('dead', tonumber(ARGV[6]), tonumber(ARGV[7]))) do found[#found + 1] = one end
table.sort(found, function(a, b) return a[2] < b[2] or (a[2] == b[2] and a[1] < b[1]) end)
local gone = math.min(limit, #found)
for i = 1, gone do
  local id = found[i][1]
  local m = parse(redis.call('HGET', queue.at .. 'p', id))
  leave(queue, id, m)
  let_go(queue, id, m)
  vanish(queue, id, m)
end
count(queue, 'discard', gone)
for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', queue.at .. 's', 'redrive')) do
  local is = {}
  for i = 1, #consumer, 2 do is[consumer[i]] = consumer[i + 1] end
  if is.pending == 0 and is.idle > IDLE_MS then redis.call('XGROUP', 'DELCONSUMER', queue.at .. 's', 'redrive', is.name) end
end
-- What arrived from other nodes a day ago is not sent again.
redis.call('ZREMRANGEBYSCORE', queue.at .. 'arrived', '-inf', queue.now - 86400000)
forget_keys(queue)
close(queue)
return { 'ok', gone }
