-- From this epoch on, leases of earlier ones are refused. Whoever comes late with an earlier one changes nothing.
local fence = redis.call('HGET', KEYS[1], 'fence')
if fence and fence < ARGV[1] then redis.call('HSET', KEYS[1], 'fence', ARGV[1]) end
return 'ok'
