-- What follows when a message died: its key is let go, and it may travel on to another queue in the same step.

-- Why a queue has no place for a message of another one; nothing where it has.
local function no_place(from, to, id, m, max_classes)
  if redis.call('HEXISTS', to.at .. 'p', id) == 1 then return 'd' end
  local pair = pair_of(from, m.class)
  if redis.call('HEXISTS', to.at .. 'class:number', pair) == 0 and redis.call('HLEN', to.at .. 'class:number') >= max_classes then return 'c' end
  return nil
end

-- Takes a message that waits nowhere over into a queue that has a place for it.
local function carry(from, to, id, m, max_classes)
  local class = class_number(to, pair_of(from, m.class), max_classes)
  let_go(from, id, m)
  local body = redis.call('HGET', from.at .. 'b', id)
  local values = {}
  drop(m, 'w')
  drop(m, 'u')
  for letter in string.gmatch(m.kept, '%a') do values[letter] = redis.call('HGET', from.at .. KEPT[letter], id) end
  redis.call('HDEL', from.at .. 'keys', id)
  vanish(from, id, m)
  count(from, 'move', 1)
  for letter, value in pairs(values) do redis.call('HSET', to.at .. KEPT[letter], id, value) end
  redis.call('HSET', to.at .. 'origins', id, redis.call('HGET', from.key, 'name'))
  keep(m, 'o')
  redis.call('HSET', to.at .. 'b', id, body)
  redis.call('ZADD', to.at .. 'ids', 0, id)
  of_class(to, class, 1)
  m.class = class
  count(to, 'moved_in', 1)
  to.leases = math.max(to.leases, from.leases)
end

-- Makes a message ready with all its attempts before it.
local function revive(m, now)
  m.visible, m.attempts, m.before = now, 0, m.deliveries
  if m.expires and m.expires <= now then m.expires = nil end
end

-- Where a message stands when it arrives in another queue.
local function arrive(to, id, m)
  promote(to)
  if m.phase == 'k' then
    m.place = next_place(to)
    redis.call('ZADD', to.at .. 'done', m.done_at, id)
    redis.call('HSET', to.at .. 'p', id, line_of(m))
    return
  end
  if m.phase == 'x' then revive(m, to.now) else m.visible = math.max(m.visible, to.now) end
  m.phase, m.place = 'r', next_place(to)
  wait(to, id, m)
  -- What has died begins anew, and cannot be over a cap.
  if tonumber(m.attempts) > 0 or tonumber(m.deliveries) > tonumber(m.before) then redis.call('HINCRBY', to.key, 'capped', 1) end
end

-- Lets a message die that waits nowhere any more. Where `to` is, it travels on; the name of that queue is answered.
local function die(queue, id, m, reason, print, to, max_classes)
  m.phase, m.reason, m.died_at, m.print = 'x', reason, text(queue.now), print
  redis.call('HSET', queue.at .. 'deaths', id, reason .. ' ' .. m.died_at .. ' ' .. print)
  keep(m, 'h')
  count(queue, 'died', 1)
  let_go(queue, id, m)
  if to and not no_place(queue, to, id, m, max_classes) then
    carry(queue, to, id, m, max_classes)
    arrive(to, id, m)
    return redis.call('HGET', to.key, 'name')
  end
  redis.call('ZADD', queue.at .. 'dead', queue.now, id)
  redis.call('ZADD', queue.at .. 'group:' .. print, queue.now, id)
  redis.call('ZINCRBY', queue.at .. 'groups', 1, print)
  -- In a cluster it travels on by itself.
  if queue.relay then redis.call('HSET', queue.at .. 'leaving', id, queue.relay) end
  redis.call('HSET', queue.at .. 'p', id, line_of(m))
  return false
end
