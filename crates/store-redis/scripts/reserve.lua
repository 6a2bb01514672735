-- Numbers for the leases of a queue at another node of a cluster: the last of them, and the epoch that they are of.
--
-- KEYS: the record of the store. ARGV: how many.
return { redis.call('HINCRBY', KEYS[1], 'leases', ARGV[1]), redis.call('HGET', KEYS[1], 'epoch') }
