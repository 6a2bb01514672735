-- A queue comes into being; its name is written down by `directory_add`.
--
-- ARGV: time, name, version, configuration, then keys and their weights.
local floor = clock
redis.call('HSET', KEYS[1], 'name', ARGV[2], 'created', floor, 'version', ARGV[3], 'stamp', 1, 'config', ARGV[4], 'paused', '{}',
  'floor', floor, 'place', 0, 'leases', 0, 'owed', 0, 'fence', '0000', 'classes', 0)
local at = string.sub(KEYS[1], 1, -2)
redis.call('XGROUP', 'CREATE', at .. 's', 'redrive', '$', 'MKSTREAM')
for i = 5, #ARGV, 2 do redis.call('HSET', at .. 'weights', ARGV[i], ARGV[i + 1]) end
return { 'ok', floor }
