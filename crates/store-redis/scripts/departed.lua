-- A message that set out has arrived, and is taken away; or the other queue had no place for it, and it is back where it was.
--
-- ARGV: time, id, whether it has arrived, the number of its way. One that has set out anew since then is left alone.
local queue = open(1)
if not queue then return { 'gone' } end
local id = ARGV[2]
local way = string.match(redis.call('HGET', queue.at .. 'leaving', id) or '', ' (%d+)$') or '0'
if way ~= ARGV[4] then return { 'e' } end
local line = redis.call('HGET', queue.at .. 'p', id)
redis.call('HDEL', queue.at .. 'leaving', id)
local m = line and parse(line)
if m and string.find(m.phase, '^%u') then
  promote(queue)
  if ARGV[3] == '1' then
    let_go(queue, id, m)
    redis.call('HDEL', queue.at .. 'keys', id)
    drop(m, 'w')
    drop(m, 'u')
    vanish(queue, id, m)
    count(queue, 'move', 1)
  else
    m.phase = string.lower(m.phase)
    if m.phase == 'x' then
      redis.call('ZADD', queue.at .. 'dead', m.died_at, id)
      redis.call('ZADD', queue.at .. 'group:' .. m.print, m.died_at, id)
      redis.call('ZINCRBY', queue.at .. 'groups', 1, m.print)
      redis.call('HSET', queue.at .. 'p', id, line_of(m))
    elseif m.phase == 'k' then
      redis.call('ZADD', queue.at .. 'done', m.done_at, id)
      redis.call('HSET', queue.at .. 'p', id, line_of(m))
    else
      wait(queue, id, m)
      -- Whoever looked for what is over a cap has passed it.
      if m.attempts > 0 or m.deliveries > m.before then redis.call('HINCRBY', queue.key, 'capped', 1) end
    end
  end
end
close(queue)
return { 'e' }
