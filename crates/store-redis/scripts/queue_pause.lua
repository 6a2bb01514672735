-- Pauses, as they are from now on. Keys that were taken out of their ring come back: whoever leases next looks anew.
--
-- ARGV: time, the stamp that was seen, the pauses as text, then keys and until when they are paused.
local queue = open(1)
if not queue then return { 'gone' } end
if queue.stamp ~= ARGV[2] then return { 'stale' } end
redis.call('HSET', queue.key, 'paused', ARGV[3])
redis.call('HINCRBY', queue.key, 'stamp', 1)
redis.call('DEL', queue.at .. 'pauses')
for i = 4, #ARGV, 2 do redis.call('HSET', queue.at .. 'pauses', ARGV[i], ARGV[i + 1]) end
for _, lane in ipairs({ 'f', 'r' }) do
  local parked = queue.at .. 'parked:' .. lane
  for _, key in ipairs(redis.call('ZRANGE', parked, 0, -1)) do
    comes_back(queue, lane, key)
  end
  redis.call('DEL', parked)
end
close(queue)
return { 'ok', queue.now }
