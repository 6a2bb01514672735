-- One message to see whether an outage is over: with the fewest attempts, and another than the last where there is another.
local function pick_probe()
  -- The first that is found is the best; whether there is another is all that is of interest after it.
  local best, kept, others
  local function try(id)
    local line = redis.call('HGET', queue.at .. 'p', id)
    local m = line and parse(line)
    if not m or m.phase ~= 'r' or (passes and not passes[m.class]) or (key_pauses and holds(m.key)) or spent(m) or (m.expires and m.expires <= queue.now) then return end
    local found = { id = id, place = m.place, m = m }
    if id == avoid then
      kept = found
    elseif best then
      others = true
    else
      best = found
    end
  end
  local function enough()
    return best and (others or kept)
  end
  local rank = 0
  while not enough() do
    local _, line = head_at(queue, rank, math.huge)
    if not line then break end
    rank = rank + 1
    local from, entries = 0, nil
    while string.sub(line, 1, 2) == 'f:' and not enough() and (not entries or #entries > 0) do
      entries = redis.call('LRANGE', queue.at .. 'r:' .. line, from, from + 9)
      for _, entry in ipairs(entries) do
        if not enough() then try(string.match(entry, '^%d+:(.*)$')) end
      end
      from = from + 10
    end
  end
  local from, ids = 0, nil
  while not enough() and (not ids or #ids > 0) do
    ids = redis.call('ZRANGE', queue.at .. 'tries', from, from + 99)
    for _, id in ipairs(ids) do
      if not enough() then try(id) end
    end
    from = from + 100
  end
  local found = best or kept
  if found then
    step_out(queue, found.id, found.m)
    picked[1] = ready(found.m.line, found.id, lane_of(found.m), text(found.m.place))
  end
  if due_left or #overdue > 0 or enough() then more = 1 end
end
