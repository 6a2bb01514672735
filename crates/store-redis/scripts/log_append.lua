-- Records for a log, a stream whose entries are numbered without a gap.
--
-- KEYS: the log, the number of its last record. ARGV: time, values.
local numbers = {}
local last = tonumber(redis.call('GET', KEYS[2]) or '0')
for i = 2, #ARGV do
  last = last + 1
  redis.call('XADD', KEYS[1], string.format('%.0f-0', last), 'at', string.format('%.0f', clock), 'value', ARGV[i])
  numbers[#numbers + 1] = last
end
redis.call('SET', KEYS[2], string.format('%.0f', last))
return numbers
