-- A server is met, and the epoch of lease ids is raised where it is another than before.
--
-- KEYS: the record of the store. ARGV: format, the first epoch, what the server calls itself, whom it follows, where it is, and the
-- highest number of a lease that whoever meets it was given.
local store = KEYS[1]
local format = redis.call('HGET', store, 'format')
if not format then
  redis.call('HSET', store, 'format', ARGV[1], 'epoch', ARGV[2], 'version', 0, 'leases', 0, 'queues', 0)
elseif format ~= ARGV[1] then
  return { 'format', format }
end
local server = 'server:' .. ARGV[3]
if redis.call('HEXISTS', store, server) == 1 then return { 'known', redis.call('HGET', store, 'epoch') } end
local followed = 'server:' .. ARGV[4]
local after = redis.call('HEXISTS', store, followed) == 1
local others = false
local fields = redis.call('HGETALL', store)
for i = 1, #fields, 2 do
  if string.sub(fields[i], 1, 7) == 'server:' then
    others = true
    -- Whoever was there is there no more: without this the record would grow with every start.
    if fields[i + 1] == ARGV[5] then redis.call('HDEL', store, fields[i]) end
  end
end
if after then redis.call('HDEL', store, followed) end
redis.call('HSET', store, server, ARGV[5])
-- It does not remember a lease that it gave out: it was not synced.
local lost = tonumber(redis.call('HGET', store, 'leases')) < tonumber(ARGV[6])
if not others and not lost then return { 'first', redis.call('HGET', store, 'epoch') } end
local epoch = redis.call('HINCRBY', store, 'epoch', 1)
-- A server that does not sync may have forgotten that it was met before, and raise to an epoch in which it has given out leases. So
-- numbers go on where the clock is, 64 of them for each millisecond: that is more than anybody gives out, and lasts until 2109.
local time = redis.call('TIME')
local reached = (time[1] * 1000 + math.floor(time[2] / 1000)) * 64
if tonumber(redis.call('HGET', store, 'leases')) < reached then
  redis.call('HSET', store, 'leases', string.format('%.0f', reached))
end
return { after and 'failover' or lost and 'lost' or 'new', epoch }
