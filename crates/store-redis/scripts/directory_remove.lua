-- The name of a queue is free again.
--
-- KEYS: the directory, its names in order. ARGV: name, id.
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
end
return 'ok'
