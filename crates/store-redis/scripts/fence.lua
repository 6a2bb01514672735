-- From this epoch on, leases of earlier ones are refused.
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'fence', ARGV[1]) end
return 'ok'
