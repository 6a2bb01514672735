-- Whole messages. Nothing is changed.
--
-- ARGV: time, ids.
local queue = open(1)
if not queue then return { 'gone' } end
local answers = {}
for i = 2, #ARGV do
  local id = ARGV[i]
  local line = redis.call('HGET', queue.at .. 'p', id)
  if line then
    local answer = { id, line, redis.call('HGET', queue.at .. 'b', id) }
    local m = parse(line)
    if m.kept ~= '-' then
      for letter in string.gmatch(m.kept, '%a') do
        answer[#answer + 1] = letter
        answer[#answer + 1] = redis.call('HGET', queue.at .. KEPT[letter], id)
      end
    end
    answers[#answers + 1] = answer
  end
end
return { 'ok', queue.now, answers }
