-- reschedule: ready ↔ delayed, or another priority. The words of the verb: from when on (`+`, `@` or `-`, and a number; empty where that
-- stays as it is), and the priority, or nothing.
local visible, priority = ARGV[4], tonumber(ARGV[5])
return each(function(id, m)
  unwait(queue, id, m)
  if visible ~= '' then
    local how, number = string.sub(visible, 1, 1), tonumber(string.sub(visible, 2))
    m.visible = queue.now
    if how == '+' then m.visible = math.min(queue.now + number, 253402300799999) end
    if how == '@' then m.visible = math.max(queue.now, number) end
    m.place = next_place(queue)
  end
  m.priority = priority or m.priority
  wait(queue, id, m)
  count(queue, 'reschedule', 1)
end)
