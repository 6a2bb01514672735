-- Where lines begin. A lease that takes from a line leaves what `heads` says of it as it was, so a line begins there or behind it;
-- whoever wants to know sets right what is not.

-- The first entry of the line at that rank, and the line, once all before it are right; nothing where there are not so many lines. `steps`
-- is how many may be set right: where they are not enough, it answers `true`.
local function head_at(queue, rank, steps)
  local heads = queue.at .. 'heads'
  for _ = 0, steps do
    local line, said = unpack(redis.call('ZRANGE', heads, rank, rank, 'WITHSCORES'))
    if not line then return nil end
    local entry = redis.call('LINDEX', queue.at .. 'r:' .. line, 0)
    local place = entry and string.match(entry, '^%d+')
    if place and tonumber(place) == tonumber(said) then return entry, line end
    if place then redis.call('ZADD', heads, place, line) else redis.call('ZREM', heads, line) end
  end
  return true
end
