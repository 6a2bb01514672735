-- What waits in a queue and is over a cap, as the judge wants to see it: what leases have put aside, and then, where the settings have changed or
-- something has come from another queue, a step of all messages, by id. A look begins where the one before has ended, as long as nothing has
-- come to it since; `~` is behind all of them.
--
-- ARGV: time, stamp, how many are looked at in a step, how many are wanted, max_attempts, max_deliveries.
local queue = open(1)
if not queue then return { 'gone' } end
if queue.stamp ~= ARGV[2] then return { 'stale' } end
local wanted, max_attempts, max_deliveries = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local answers = {}
local aside = redis.call('ZRANGE', queue.at .. 'over', 0, wanted - 1)
for i = 1, #aside do answers[i] = judged(queue, aside[i]) end

local capped, from = unpack(redis.call('HMGET', queue.key, 'capped', 'capped:from'))
local number, last = string.match(from or '', '^(%d+) (%S+)$')
if number ~= capped then last = nil end
if not capped or last == '~' or #answers >= wanted then return { 'ok', queue.now, '', '', answers } end
local ids = redis.call('ZRANGEBYLEX', queue.at .. 'ids', last and '(' .. last or '-', '+', 'LIMIT', '0', ARGV[3])
local lines = #ids > 0 and redis.call('HMGET', queue.at .. 'p', unpack(ids)) or {}
for i = 1, #ids do
  local m = parse(lines[i])
  local max = m.max or max_attempts
  local over = (max and m.attempts >= max) or (max_deliveries and m.deliveries - m.before >= max_deliveries)
  if over and (m.phase == 'd' or m.phase == 'r') then
    if #answers == wanted then return { 'ok', queue.now, capped, last or '', answers } end
    answers[#answers + 1] = judged(queue, ids[i])
  end
  last = ids[i]
end
return { 'ok', queue.now, capped, #ids < tonumber(ARGV[3]) and '~' or last, answers }
