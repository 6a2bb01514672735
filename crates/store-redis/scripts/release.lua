-- release: leased → ready | delayed, with the attempt refunded. The word of an item is its delay, empty where it gets its old place
-- back. Whoever has no delivery left is told about, so that it can lapse: to say so is not ours.
local refused = refusals(function() return 'l' end)
if refused then return { 'ok', now_of(), refused } end

local answers = {}
for i = 1, items do
  local queue, id = queue_of(i), word(i, 2)
  local m, why = held(i)
  if m then
    queue.touched[id] = true
    promote(queue)
    unlease(queue, id, m)
    local consumer = m.consumer
    local delay = tonumber(word(i, 4))
    m.attempts = math.max(0, m.attempts - 1)
    m.phase = 'r'
    if delay then
      m.visible, m.place = math.min(queue.now + delay, 253402300799999), next_place(queue)
    end
    wait(queue, id, m)
    count(queue, 'release', 1)
    answers[i] = { 'e', text(m.visible), consumer, judged(queue, id) }
  else
    answers[i] = { why }
  end
end
for _, queue in ipairs(queues) do close(queue) end
return { 'ok', now_of(), answers }
