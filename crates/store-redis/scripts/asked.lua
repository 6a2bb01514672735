-- What is asked of a lease, and what is answered before anybody is served: what is overdue or too old, because to judge that is not ours. Whoever has
-- dealt with it asks again.
--
-- ARGV: time, stamp, limit, lease time, fresh, retry, share, most retries, lease_timeout, max_lease,
-- max_attempts, max_deliveries, the epoch of the numbers that were reserved, most bytes, paused until, whether keys have weights, whether keys are paused, whether it
-- was swept, how many may be, pick, the probe to avoid, the first of those numbers, types, and all of
-- them, and sources; then who asks: of each consumer its name, the same escaped, and how many it wants, which is `limit` in all. Those who ask first are served
-- first. Numbers of leases grow over all queues: a single server counts them in the record of the store, KEYS[3], which
-- has their epoch, too; in a cluster that is elsewhere, and they are reserved before. Whoever asks may not have heard of the epoch of now.
local queue = open(1)
if not queue then return { 'gone' } end
if queue.stamp ~= ARGV[2] then return { 'stale' } end

local limit, asked = tonumber(ARGV[3]), tonumber(ARGV[4])
local serves = { f = ARGV[5] == '1', r = ARGV[6] == '1' }
local share, retries_max = tonumber(ARGV[7]), tonumber(ARGV[8])
local lease_timeout, max_lease, max_attempts, max_deliveries = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
local epoch, bytes_left, paused_until = ARGV[13], tonumber(ARGV[14]), tonumber(ARGV[15])
local weighted, key_pauses, swept, probe, avoid = ARGV[16] == '1', ARGV[17] == '1', ARGV[18] == '1', ARGV[20] == 'probe', ARGV[21]

-- Another call has reserved later numbers and was faster, and ours would not grow; or leases of their epoch are refused by now.
local reserved = tonumber(ARGV[22])
if reserved and (reserved <= queue.leases or epoch < queue.fence) then return { 'late' } end

-- Which classes pass; nothing where all do.
local passes
-- The words about the first who asks are behind this one.
local askers
do
  local kinds, sources = tonumber(ARGV[23]), tonumber(ARGV[24 + tonumber(ARGV[23])])
  askers = 24 + kinds + sources
  if kinds > 0 or sources > 0 then
    local wanted = { {}, {} }
    for i = 1, kinds do wanted[1][ARGV[23 + i]] = true end
    for i = 1, sources do wanted[2][ARGV[24 + kinds + i]] = true end
    passes = {}
    local all = redis.call('HGETALL', queue.at .. 'class:number')
    for i = 1, #all, 2 do
      local kind, source = string.match(all[i], '^(%S*) (%S*)$')
      passes[all[i + 1]] = (kinds == 0 or wanted[1][kind]) and (sources == 0 or wanted[2][source]) or false
    end
  end
end

local due_left = promote(queue)

local overdue = redis.call('ZRANGEBYSCORE', queue.at .. 'deadlines', '-inf', queue.now_text, 'LIMIT', '0', ARGV[19])
if not swept then
  local lapsing = redis.call('ZRANGEBYSCORE', queue.at .. 'ttl', '-inf', queue.now_text, 'LIMIT', '0', ARGV[19])
  if #overdue > 0 or #lapsing > 0 then
    close(queue)
    local found = { {}, {} }
    for _, member in ipairs(overdue) do
      found[1][#found[1] + 1] = judged(queue, message_of(member))
    end
    for _, id in ipairs(lapsing) do found[2][#found[2] + 1] = judged(queue, id) end
    return { 'sweep', queue.now, found[1], found[2] }
  end
end

if paused_until and queue.now < paused_until then
  close(queue)
  return { 'ok', queue.now, 0, {}, {} }
end
