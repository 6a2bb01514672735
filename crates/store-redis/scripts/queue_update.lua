-- Another configuration. What was put aside because it was over a cap stands in line again; whoever leases next looks anew.
--
-- ARGV: time, the stamp that was seen, version, configuration, then keys and their weights.
local queue = open(1)
if not queue then return { 'gone' } end
if queue.stamp ~= ARGV[2] then return { 'stale' } end
redis.call('HSET', queue.key, 'version', ARGV[3], 'config', ARGV[4])
redis.call('HINCRBY', queue.key, 'stamp', 1)
redis.call('HINCRBY', queue.key, 'capped', 1)
redis.call('DEL', queue.at .. 'weights')
for i = 5, #ARGV, 2 do redis.call('HSET', queue.at .. 'weights', ARGV[i], ARGV[i + 1]) end
-- The last first: each of them stands before all that are in its line by then.
for _, id in ipairs(redis.call('ZREVRANGE', queue.at .. 'over', 0, -1)) do
  local line = redis.call('HGET', queue.at .. 'p', id)
  local m = line and parse(line)
  if m and m.phase == 'r' then stand(queue, id, m) end
end
redis.call('DEL', queue.at .. 'over')
close(queue)
return { 'ok', queue.now }
