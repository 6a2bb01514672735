-- What waits in a queue and may be over a cap that was lowered, or that another queue did not have, as the judge wants to see it: what leases have put aside, and then,
-- where there may be more, a step of what was handed out before, by id. A look ends where the one before has ended, as long as nothing has
-- come to it since.
--
-- ARGV: time, how many are looked at in a step, how many are wanted.
local queue = open(1)
if not queue then return { 'gone' } end
local wanted = tonumber(ARGV[3])
local answers = {}
local aside = redis.call('ZRANGE', queue.at .. 'over', 0, wanted - 1)
for i = 1, #aside do answers[i] = judged(queue, aside[i]) end

local capped, from = unpack(redis.call('HMGET', queue.key, 'capped', 'capped:from'))
if not capped or #answers >= wanted then return { 'ok', queue.now, queue.stamp, '', '', answers } end
local number, last = string.match(from or '', '^(%d+) (%S+)$')
local after = number == capped and '(' .. last or '-'
local ids = redis.call('ZRANGEBYLEX', queue.at .. 'ids', after, '+', 'LIMIT', 0, ARGV[2])
if #ids == 0 then return { 'ok', queue.now, queue.stamp, capped, '', answers } end
local lines, seen = redis.call('HMGET', queue.at .. 'p', unpack(ids)), ids[#ids]
for i = 1, #ids do
  local m = parse(lines[i])
  if (m.phase == 'd' or m.phase == 'r') and (m.attempts > 0 or m.deliveries > m.before) then
    if #answers == wanted then
      seen = ids[i - 1] or last or ''
      break
    end
    answers[#answers + 1] = judged(queue, ids[i])
  end
end
return { 'ok', queue.now, queue.stamp, capped, seen, answers }
