-- A server is met, and the epoch of lease ids is raised where it is another than before. Where something may be lost, leases of before
-- are refused: by this script, or in a cluster, where it does not reach the queues, by whoever meets the server. The server is known
-- only when that is done, so whoever ends in between leaves it to the next.
--
-- KEYS: the record of the store, the directory of queues. ARGV: format, the first epoch, what the server calls itself, whom it follows,
-- its place, the highest number of a lease that whoever meets it was given, how the keys of queues begin (nothing in a cluster),
-- whether the leases of before are refused by now, and the places of all that serve, as it says itself.
local NOBODY = string.rep('0', 40)
local store = KEYS[1]
local format = redis.call('HGET', store, 'format')
if not format then
  redis.call('HSET', store, 'format', ARGV[1], 'epoch', ARGV[2], 'version', 0, 'leases', 0, 'queues', 0)
elseif format ~= ARGV[1] then
  return { 'format', format }
end
local server, fencing = 'server:' .. ARGV[3], 'fencing:' .. ARGV[3]
if redis.call('HEXISTS', store, server) == 1 then return { 'known', redis.call('HGET', store, 'epoch') } end
local begun = redis.call('HGET', store, fencing)
if begun then
  local epoch = string.match(begun, '^%d+')
  if ARGV[8] ~= '1' then return { 'failover', epoch } end
  redis.call('HDEL', store, fencing)
  redis.call('HSET', store, server, ARGV[5])
  return { 'known', epoch }
end
local serves = {}
for place in string.gmatch(ARGV[9], '%S+') do serves[place] = true end
local followed = 'server:' .. ARGV[4]
local after, others = redis.call('HEXISTS', store, followed) == 1, false
-- Whether somebody was met at its place before, and whether somebody who was met serves no more.
local here, gone = false, false
local fields = redis.call('HGETALL', store)
for i = 1, #fields, 2 do
  local field, value = fields[i], fields[i + 1]
  -- Whoever was there is there no more: without this the record would grow with every start.
  if string.sub(field, 1, 7) == 'server:' then
    others = true
    if value == ARGV[5] then
      here = true
      redis.call('HDEL', store, field)
    elseif not serves[value] then
      -- Should it come back to its place, it has followed somebody meanwhile.
      gone = true
      redis.call('HSET', store, field, '')
    end
  elseif string.sub(field, 1, 8) == 'fencing:' then
    others = true
    -- What it may have lost is lost, whatever it calls itself now.
    local place = string.match(value, '^%d+ (.*)$')
    if place == ARGV[5] then
      after = true
      redis.call('HDEL', store, field)
    elseif not serves[place] then
      gone = true
    end
  end
end
-- Whom it follows is known, or somebody that nobody of us has met.
if ARGV[4] ~= NOBODY then
  after = others
  -- What was left undone at the one that it follows is done with it.
  redis.call('HDEL', store, followed, 'fencing:' .. ARGV[4])
elseif gone and not here then
  -- It took over and was started again before anybody met it, so that it names nobody any more: its place is new, and who had one is gone.
  after = true
end
-- It does not remember a lease that it gave out: it was not synced.
local lost = tonumber(redis.call('HGET', store, 'leases')) < tonumber(ARGV[6])
if not others and not lost then
  redis.call('HSET', store, server, ARGV[5])
  return { 'first', redis.call('HGET', store, 'epoch') }
end
local epoch = redis.call('HINCRBY', store, 'epoch', 1)
-- A server that does not sync may have forgotten that it was met before, and raise to an epoch in which it has given out leases. So
-- numbers go on where the clock is, 64 of them for each millisecond: that is more than anybody gives out, and lasts until 2109.
local time = redis.call('TIME')
local reached = (time[1] * 1000 + math.floor(time[2] / 1000)) * 64
if tonumber(redis.call('HGET', store, 'leases')) < reached then
  redis.call('HSET', store, 'leases', string.format('%.0f', reached))
end
if not after and not lost then
  redis.call('HSET', store, server, ARGV[5])
  return { 'new', epoch }
end
if ARGV[7] == '' then
  redis.call('HSET', store, fencing, epoch .. ' ' .. ARGV[5])
else
  for _, id in ipairs(redis.call('HVALS', KEYS[2])) do
    local queue = ARGV[7] .. '{' .. id .. '}:q'
    if redis.call('EXISTS', queue) == 1 then redis.call('HSET', queue, 'fence', string.format('%04x', epoch)) end
  end
  redis.call('HSET', store, server, ARGV[5])
end
return { after and 'failover' or 'lost', epoch }
