-- redrive: dead → ready. The words of the verb: most dedup keys, and who asked and why, as it is written down.
local max_keys, note = tonumber(ARGV[4]), ARGV[5]

local function taken(key)
  local held = redis.call('HGET', queue.at .. 'dedup', key)
  if not held then return nil end
  local id, till = string.match(held, '^(%S+) (%S+)$')
  if till == '-' or tonumber(till) > queue.now then return id end
  return nil
end

return each(function(id, m)
  local key = keeps(m, 'u') and redis.call('HGET', queue.at .. 'keys', id)
  if key then
    local holder = taken(key)
    if holder then return { 'd', holder } end
    local held = redis.call('HLEN', queue.at .. 'dedup') - redis.call('ZCOUNT', queue.at .. 'dedup:until', '-inf', queue.now)
    if held >= max_keys then return { 'k' } end
    redis.call('HSET', queue.at .. 'dedup', key, id .. ' -')
    redis.call('ZREM', queue.at .. 'dedup:until', key)
  end
  leave(queue, id, m)
  revive(m, queue.now)
  m.phase, m.redrives, m.place = 'r', m.redrives + 1, next_place(queue)
  redis.call('HSET', queue.at .. 'notes', id, string.format('%.0f %s', queue.now, note))
  keep(m, 'n')
  wait(queue, id, m)
  count(queue, 'redrive', 1)
end)
