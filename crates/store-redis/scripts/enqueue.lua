-- enqueue: nothing → ready | delayed. First it is seen what becomes of each message, and then all of it is written.
--
-- ARGV: time, all or nothing (2 where it cannot be all any more), most classes, most dedup keys, queues; of each queue its stamp, max_waiting, dedup_window; of each
-- message its queue, id, content, priority, from when on (`+`, `@` or `-`, and a number), until when (the same), max_attempts,
-- lease_timeout, class, key, load, dedup key (behind `w` or `u`).
local ITEM = 12
local all, max_classes, max_keys, number = ARGV[2] ~= '0', tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

local queues = {}
for n = 1, number do
  local at = 5 + 3 * (n - 1)
  local queue = open(n)
  if not queue then return { 'gone', n } end
  if queue.stamp ~= ARGV[at + 1] then return { 'stale', n } end
  queue.max_waiting, queue.window = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  queue.ids, queue.held, queue.classes, queue.taken = {}, {}, {}, {}
  queue.new_classes, queue.new_keys = 0, 0
  queues[n] = queue
end

local first = 5 + 3 * number
local items = (#ARGV - first) / ITEM

-- Which of them are there already.
for i = 1, items do
  local queue = queues[tonumber(ARGV[first + ITEM * (i - 1) + 1])]
  queue.ids[#queue.ids + 1] = ARGV[first + ITEM * (i - 1) + 2]
end
for _, queue in ipairs(queues) do
  queue.there = {}
  if #queue.ids > 0 then
    local lines = redis.call('HMGET', queue.at .. 'p', unpack(queue.ids))
    for i, id in ipairs(queue.ids) do queue.there[id] = lines[i] and true end
  end
end

local function when(queue, said)
  local how = string.sub(said, 1, 1)
  if how == '-' then return nil end
  local number = tonumber(string.sub(said, 2))
  if how == '+' then return math.min(queue.now + number, 253402300799999) end
  return math.max(queue.now, number)
end

local function waiting(queue)
  if not queue.waiting then
    queue.waiting = redis.call('ZCARD', queue.at .. 'ids') - redis.call('ZCARD', queue.at .. 'deadlines')
      - redis.call('ZCARD', queue.at .. 'dead') - redis.call('ZCARD', queue.at .. 'done')
  end
  return queue.waiting + #queue.taken
end

local function held_keys(queue)
  if not queue.keys then
    queue.keys = redis.call('HLEN', queue.at .. 'dedup') - redis.call('ZCOUNT', queue.at .. 'dedup:until', '-inf', queue.now)
  end
  return queue.keys + queue.new_keys
end

-- The message that has a dedup key.
local function holder(queue, key)
  local held = queue.held[key] or redis.call('HGET', queue.at .. 'dedup', key)
  if not held then return nil end
  local id, till = string.match(held, '^(%S+) (%S+)$')
  if till == '-' or tonumber(till) > queue.now then return id end
  return nil
end

local function class_of(queue, pair)
  local class = queue.classes[pair]
  if class == nil then
    class = redis.call('HGET', queue.at .. 'class:number', pair)
    if not class then
      if redis.call('HLEN', queue.at .. 'class:number') + queue.new_classes >= max_classes then return nil end
      queue.new_classes = queue.new_classes + 1
      class = 'new'
    end
    queue.classes[pair] = class
  end
  return class
end

local outcomes, refused = {}, ARGV[2] == '2'
for i = 1, items do
  local at = first + ITEM * (i - 1)
  local queue, id, pair, dedup = queues[tonumber(ARGV[at + 1])], ARGV[at + 2], ARGV[at + 9], ARGV[at + 12]
  local key = dedup ~= '' and string.sub(dedup, 2) or nil
  local before = queue.there[id] and id or (key and holder(queue, key))
  if before then
    outcomes[i] = 'd' .. before
    count(queue, 'duplicates', 1)
  elseif queue.max_waiting and waiting(queue) >= queue.max_waiting then
    outcomes[i] = 'f'
  elseif not class_of(queue, pair) then
    outcomes[i] = 'c'
  elseif key and held_keys(queue) >= max_keys then
    outcomes[i] = 'k'
  else
    local visible = when(queue, ARGV[at + 5]) or queue.now
    outcomes[i] = 'e' .. text(visible)
    queue.there[id] = true
    queue.taken[#queue.taken + 1] = { at = at, visible = visible }
    if key then
      local till = '-'
      if string.sub(dedup, 1, 1) == 'w' then till = text(queue.now + queue.window) end
      if till == '-' or tonumber(till) > queue.now then queue.new_keys = queue.new_keys + 1 end
      queue.held[key] = id .. ' ' .. till
    end
  end
  local answer = string.sub(outcomes[i], 1, 1)
  refused = refused or (answer ~= 'e' and answer ~= 'd')
end

if all and refused then
  for i = 1, items do
    local answer = string.sub(outcomes[i], 1, 1)
    if answer == 'e' or answer == 'd' then outcomes[i] = 'a' end
  end
  return { 'ok', queues[1] and queues[1].now or clock, outcomes }
end

local function write(queue)
  promote(queue)
  local lines, bodies, ids, later, ends, stood, order, classes = {}, {}, {}, {}, {}, {}, {}, {}
  for _, taken in ipairs(queue.taken) do
    local at = taken.at
    local id, priority, key, dedup = ARGV[at + 2], ARGV[at + 4], ARGV[at + 10], ARGV[at + 12]
    local expires = when(queue, ARGV[at + 6])
    local class = queue.classes[ARGV[at + 9]]
    if class == 'new' then
      class = class_number(queue, ARGV[at + 9], max_classes)
      queue.classes[ARGV[at + 9]] = class
    end
    classes[class] = (classes[class] or 0) + 1
    local place = next_place(queue)
    local phase = taken.visible > queue.now and 'd' or 'r'
    local kept = dedup == '' and '-' or string.sub(dedup, 1, 1)
    local n = #lines
    lines[n + 1] = id
    lines[n + 2] = table.concat({ phase, text(taken.visible), text(place), priority, maybe(expires), '0 0 0 0',
      ARGV[at + 7], ARGV[at + 8], class, ARGV[at + 11], text(queue.now), kept, key }, ' ')
    bodies[n + 1], bodies[n + 2] = id, ARGV[at + 3]
    ids[n + 1], ids[n + 2] = 0, id
    if phase == 'd' then
      later[#later + 1] = taken.visible
      later[#later + 1] = string.format('%016.0f:%s', place, id)
    else
      local line = 'f:' .. priority .. ':' .. class .. ':' .. key
      local entries = stood[line]
      if not entries then
        entries = { first = place, m = { priority = tonumber(priority), class = class, key = key } }
        stood[line] = entries
        order[#order + 1] = line
      end
      entries[#entries + 1] = text(place) .. ':' .. id
    end
    if expires then
      ends[#ends + 1] = expires
      ends[#ends + 1] = id
    end
    if dedup ~= '' then redis.call('HSET', queue.at .. 'keys', id, string.sub(dedup, 2)) end
  end
  redis.call('HSET', queue.at .. 'p', unpack(lines))
  redis.call('HSET', queue.at .. 'b', unpack(bodies))
  redis.call('ZADD', queue.at .. 'ids', unpack(ids))
  if #later > 0 then redis.call('ZADD', queue.at .. 'delayed', unpack(later)) end
  if #ends > 0 then redis.call('ZADD', queue.at .. 'ttl', unpack(ends)) end
  for _, line in ipairs(order) do
    local entries = stood[line]
    if redis.call('RPUSH', queue.at .. 'r:' .. line, unpack(entries)) == #entries then
      begins(queue, 'f', entries.m, entries.first)
    end
  end
  for class, number in pairs(classes) do redis.call('HINCRBY', queue.at .. 'class:count', class, number) end
  count(queue, 'enqueue', #queue.taken)
end

-- Keys whose time is up make room.
local function forget_keys(queue)
  local gone = redis.call('ZRANGEBYSCORE', queue.at .. 'dedup:until', '-inf', queue.now, 'LIMIT', 0, 1000)
  if #gone == 0 then return end
  redis.call('HDEL', queue.at .. 'dedup', unpack(gone))
  redis.call('ZREM', queue.at .. 'dedup:until', unpack(gone))
end

for _, queue in ipairs(queues) do
  if next(queue.held) then forget_keys(queue) end
  for key, held in pairs(queue.held) do
    redis.call('HSET', queue.at .. 'dedup', key, held)
    local till = string.match(held, ' (%S+)$')
    if till == '-' then
      redis.call('ZREM', queue.at .. 'dedup:until', key)
    else
      redis.call('ZADD', queue.at .. 'dedup:until', till, key)
    end
  end
  if #queue.taken > 0 then write(queue) end
  close(queue)
end
return { 'ok', queues[1] and queues[1].now or clock, outcomes }
