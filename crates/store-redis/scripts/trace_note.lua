-- A queue is about to come or to go: whoever finds that half done clears it away.
--
-- KEYS: the notes of such queues. ARGV: its id and its name.
redis.call('SADD', KEYS[1], ARGV[1])
return 'ok'
