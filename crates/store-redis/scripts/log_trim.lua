-- Forgets the records of a log that are older than that; answers how many.
--
-- KEYS: the log. ARGV: horizon.
local gone, from = 0, '-'
local horizon = tonumber(ARGV[1])
while true do
  local records = redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', 1000)
  for _, record in ipairs(records) do
    if tonumber(record[2][2]) >= horizon then
      redis.call('XTRIM', KEYS[1], 'MINID', record[1])
      return gone
    end
    gone = gone + 1
    from = '(' .. record[1]
  end
  if #records < 1000 then
    redis.call('XTRIM', KEYS[1], 'MAXLEN', 0)
    return gone
  end
end
