-- How a step over many messages begins: one queue, for a move another, and the messages with their lines as they were seen. Who was
-- touched since is left alone: the next look will find it.
--
-- ARGV: time, how many words an item has, how many the verb has, those; then the items, each beginning with its id and its line.
local queue = open(1)
if not queue then return { 'gone' } end
local words, own = tonumber(ARGV[2]), tonumber(ARGV[3])
local first = 3 + own

local function each(change)
  -- Whether they were touched is seen before time lets any of them stand in line, which is a touch of its own.
  local answers = {}
  for i = first + 1, #ARGV, words do
    local line = redis.call('HGET', queue.at .. 'p', ARGV[i])
    if not line or string.find(line, '^%u') then
      answers[#answers + 1] = { 'n' }
    elseif line ~= ARGV[i + 1] then
      answers[#answers + 1] = { 'l' }
    else
      answers[#answers + 1] = false
    end
  end
  promote(queue)
  for n = 1, #answers do
    if not answers[n] then
      local id = ARGV[first + words * (n - 1) + 1]
      answers[n] = change(id, parse(redis.call('HGET', queue.at .. 'p', id))) or { 'e' }
    end
  end
  close(queue)
  return { 'ok', queue.now, answers }
end
