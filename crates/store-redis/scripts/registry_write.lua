-- Entries of the registry, all or none, each only if it is as expected.
--
-- KEYS: the record of the store; then for each change the entries of its kind, and their names in order. ARGV: for each change the
-- name, what is expected (`*`, `-` or a version), whether it is written, the value.
for i = 1, #ARGV, 4 do
  local n = (i - 1) / 4
  local entry = redis.call('HGET', KEYS[2 + 2 * n], ARGV[i])
  local version = entry and string.match(entry, '^%d+')
  local expected = ARGV[i + 1]
  if expected ~= '*' and expected ~= (version or '-') then return { 'conflict', n, version or '' } end
end
local versions = {}
for i = 1, #ARGV, 4 do
  local n = (i - 1) / 4
  if ARGV[i + 2] == '1' then
    local version = redis.call('HINCRBY', KEYS[1], 'version', 1)
    redis.call('HSET', KEYS[2 + 2 * n], ARGV[i], version .. ' ' .. ARGV[i + 3])
    redis.call('ZADD', KEYS[3 + 2 * n], 0, ARGV[i])
    versions[#versions + 1] = version
  else
    redis.call('HDEL', KEYS[2 + 2 * n], ARGV[i])
    redis.call('ZREM', KEYS[3 + 2 * n], ARGV[i])
    versions[#versions + 1] = 0
  end
end
return { 'ok', versions }
