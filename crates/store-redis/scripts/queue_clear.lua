-- Clears away what a deleted queue left, a step at a time; answers whether something may be left.
local at = string.sub(KEYS[1], 1, -2)
local STEP = 1000
local heads = redis.call('ZRANGE', at .. 'heads', 0, STEP - 1)
for _, line in ipairs(heads) do
  redis.call('UNLINK', at .. 'r:' .. line)
  redis.call('ZREM', at .. 'heads', line)
end
local groups = redis.call('ZRANGE', at .. 'groups', 0, STEP - 1)
for _, group in ipairs(groups) do
  redis.call('UNLINK', at .. 'group:' .. group)
  redis.call('ZREM', at .. 'groups', group)
end
if #heads == STEP or #groups == STEP then return 1 end
for _, name in ipairs({ 'p', 'b', 'ids', 's', 'delayed', 'deadlines', 'ttl', 'dead', 'done', 'dedup', 'dedup:until', 'keys', 'failures', 'points', 'notes',
  'deaths', 'origins', 'class:number', 'class:pair', 'class:count', 'ring:f', 'ring:r', 'lines:f', 'lines:r', 'parked:f', 'parked:r', 'turns:f', 'turns:r', 'heads', 'groups',
  'tries', 'over', 'retries', 'leaving', 'arrived', 'weights', 'pauses' }) do
  redis.call('UNLINK', at .. name)
end
return 0
