-- A page of the messages of a queue, by id, as the judge wants to see them. Nothing is changed.
--
-- ARGV: time, `ids` and then ids, or `range`, from, to, backwards, limit, or `states`, limit, and those states whose messages are known
-- apart: `deadlines`, `dead`, `done`; more than the limit is answered as `many`.
local queue = open(1)
if not queue then return { 'gone' } end
local ids = {}
if ARGV[2] == 'ids' then
  for i = 3, #ARGV do ids[#ids + 1] = ARGV[i] end
elseif ARGV[2] == 'range' then
  if ARGV[5] == '1' then
    ids = redis.call('ZREVRANGEBYLEX', queue.at .. 'ids', ARGV[4], ARGV[3], 'LIMIT', 0, ARGV[6])
  else
    ids = redis.call('ZRANGEBYLEX', queue.at .. 'ids', ARGV[3], ARGV[4], 'LIMIT', 0, ARGV[6])
  end
else
  local limit = tonumber(ARGV[3])
  for i = 4, #ARGV do limit = limit - redis.call('ZCARD', queue.at .. ARGV[i]) end
  if limit < 0 then return { 'many' } end
  for i = 4, #ARGV do
    for _, member in ipairs(redis.call('ZRANGE', queue.at .. ARGV[i], 0, -1)) do
      ids[#ids + 1] = ARGV[i] == 'deadlines' and message_of(member) or member
    end
  end
end
local answers = {}
for i, id in ipairs(ids) do answers[i] = judged(queue, id) end
return { 'ok', queue.now, answers }
