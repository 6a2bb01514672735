-- A number that no queue and no entry of the registry has had as its version.
--
-- KEYS: the record of the store.
return redis.call('HINCRBY', KEYS[1], 'version', 1)
