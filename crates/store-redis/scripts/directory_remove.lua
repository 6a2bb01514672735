-- The name of a queue is free again, and no queue that comes later gives out a lease that it gave out.
--
-- KEYS: the directory, its names in order, the record of the store. ARGV: name, id, the last lease of the queue.
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
end
if tonumber(ARGV[3]) > tonumber(redis.call('HGET', KEYS[3], 'leases') or '0') then redis.call('HSET', KEYS[3], 'leases', ARGV[3]) end
return 'ok'
