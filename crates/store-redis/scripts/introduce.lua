-- An instance comes: it is told the key of receipts, which is the one that it brings where there is none yet, and its number.
--
-- KEYS: the record of the store. ARGV: a key of receipts.
if redis.call('HEXISTS', KEYS[1], 'format') == 0 then return { 'gone' } end
redis.call('HSETNX', KEYS[1], 'receipts', ARGV[1])
return { 'ok', redis.call('HGET', KEYS[1], 'receipts'), redis.call('HINCRBY', KEYS[1], 'instances', 1) }
