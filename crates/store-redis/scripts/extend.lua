-- extend: leased → leased, with a later deadline. The word of a queue is its max_lease; of an item: for how long, whether there is
-- a checkpoint, and the checkpoint.
local refused = refusals(nil)
if refused then return { 'ok', now_of(), refused } end

-- The name of a consumer as the group has it.
local function group_name(word)
  if word == ':' then return '-' end
  return (string.gsub(string.sub(word, 2), '%%(%x%x)', function(code) return string.char(tonumber(code, 16)) end))
end

local answers = {}
for i = 1, items do
  local queue, id = queue_of(i), word(i, 2)
  local m, why = held(i)
  if m then
    queue.touched[id] = true
    local latest = m.leased_at + tonumber(queue.word)
    local deadline = math.max(m.deadline, math.min(queue.now + tonumber(word(i, 4)), latest, 253402300799999))
    if deadline ~= m.deadline then
      m.deadline = deadline
      redis.call('ZADD', queue.at .. 'deadlines', deadline, deadline_of(m.lease, id, m.entry))
    end
    -- For whoever looks at the group: it is not idle.
    redis.call('XCLAIM', queue.at .. 's', 'redrive', group_name(m.consumer), 0, m.entry, 'JUSTID')
    if word(i, 5) == '1' then checkpoint(queue, id, m, word(i, 6), point_size(queue, id, m)) end
    redis.call('HSET', queue.at .. 'p', id, line_of(m))
    count(queue, 'extend', 1)
    answers[i] = { 'e', text(deadline) }
  else
    answers[i] = { why }
  end
end
for _, queue in ipairs(queues) do close(queue) end
return { 'ok', now_of(), answers }
