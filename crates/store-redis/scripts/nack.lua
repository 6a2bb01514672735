-- nack: leased → delayed | ready | dead, and bury, which is a nack whose verdict is known. The judge has spoken; what is left is to
-- see whether the retry would come too late.
--
-- The word of a queue is the number of the queue that its dead go to, `@` and its name where it is at another node, or empty. Of an item: the sentence (`r` or `d`), the delay and
-- its rule or the reason, the fingerprint, the error, whether there is a checkpoint, and the checkpoint; the cause; and how many
-- classes a queue may have.
local refused = refusals(function(i, m)
  local queue = queue_of(i)
  local dies = word(i, 4) == 'd' or (m.expires and queue.now + tonumber(word(i, 5)) >= m.expires)
  local to = queues[tonumber(queue.word)]
  return dies and to and not no_place(queue, to, word(i, 2), m, tonumber(word(i, 12))) and 'n' or 'l'
end)
if refused then return { 'ok', now_of(), refused } end

for _, queue in ipairs(queues) do queue.relay = string.match(queue.word, '^@(.+)$') end

local answers = {}
for i = 1, items do
  local queue, id = queue_of(i), word(i, 2)
  local m, why = held(i)
  if m then
    queue.touched[id] = true
    if word(i, 9) == '1' then checkpoint(queue, id, m, word(i, 10), point_size(queue, id, m)) end
    answers[i] = ended(queue, id, m, {
      dies = word(i, 4) == 'd', delay = tonumber(word(i, 5)), rule = word(i, 6), reason = word(i, 5), print = word(i, 7),
      error = word(i, 8), cause = word(i, 11), to = queues[tonumber(queue.word)], max_classes = tonumber(word(i, 12)),
    })
    count(queue, word(i, 11) == 'b' and 'bury' or 'nack', 1)
  else
    answers[i] = { why }
  end
end
for _, queue in ipairs(queues) do close(queue) end
return { 'ok', now_of(), answers }
