-- enqueue: nothing → ready | delayed. First it is seen what becomes of each message, and then all of it is written.
--
-- ARGV: time, all or nothing (2 where it cannot be all any more), most classes, most dedup keys, queues, kinds; of each queue its stamp, max_waiting,
-- dedup_window; of each kind, which is what messages of a batch have in common, their queue, priority, from when on (`+`, `@` or `-`,
-- and a number), until when (the same), max_attempts, lease_timeout, class; of each message its kind, id, content, key, load, dedup key
-- (behind `w` or `u`).
local QUEUE, KIND, ITEM = 3, 7, 6
local all, max_classes, max_keys, number, kinds_number = ARGV[2] ~= '0', tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

local queues = {}
for n = 1, number do
  local at = 6 + QUEUE * (n - 1)
  local queue = open(n)
  if not queue then return { 'gone', n } end
  if queue.stamp ~= ARGV[at + 1] then return { 'stale', n } end
  queue.max_waiting, queue.window = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  queue.ids, queue.held, queue.classes, queue.taken = {}, {}, {}, {}
  queue.new_classes, queue.new_keys = 0, 0
  queues[n] = queue
end

local function when(queue, said)
  if said == '@0' then return queue.now end
  local how = string.sub(said, 1, 1)
  if how == '-' then return nil end
  local number = tonumber(string.sub(said, 2))
  if how == '+' then return math.min(queue.now + number, 253402300799999) end
  return math.max(queue.now, number)
end

-- What messages have in common is looked at once.
local kinds = {}
for n = 1, kinds_number do
  local at = 6 + QUEUE * number + KIND * (n - 1)
  local queue = queues[tonumber(ARGV[at + 1])]
  local visible, expires = when(queue, ARGV[at + 3]) or queue.now, when(queue, ARGV[at + 4])
  kinds[n] = {
    queue = queue, priority = ARGV[at + 2], visible = visible, expires = expires, pair = ARGV[at + 7],
    outcome = 'e' .. text(visible), later = visible > queue.now, number = 0,
    visible_text = text(visible), expires_text = maybe(expires),
    -- Its words before the place, and between that and the class.
    front = (visible > queue.now and 'd ' or 'r ') .. text(visible) .. ' ',
    middle = ' ' .. ARGV[at + 2] .. ' ' .. maybe(expires) .. ' 0 0 0 0 ' .. ARGV[at + 5] .. ' ' .. ARGV[at + 6] .. ' ',
  }
  -- A message names its kind by a text.
  kinds[text(n)] = kinds[n]
end

local first = 6 + QUEUE * number + KIND * kinds_number
local items = (#ARGV - first) / ITEM

-- Which of them are there already.
local kind_of = {}
for i = 1, items do
  local at = first + ITEM * (i - 1)
  local kind = kinds[ARGV[at + 1]]
  local ids = kind.queue.ids
  kind_of[i] = kind
  ids[#ids + 1] = ARGV[at + 2]
end
for _, queue in ipairs(queues) do
  local there, ids = {}, queue.ids
  queue.there = there
  if #ids > 0 then
    local lines = redis.call('HMGET', queue.at .. 'p', unpack(ids))
    for i = 1, #ids do
      if lines[i] then there[ids[i]] = true end
    end
  end
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
  local kind, id, dedup = kind_of[i], ARGV[at + 2], ARGV[at + 6]
  local queue = kind.queue
  local there, taken = queue.there, queue.taken
  local key = dedup ~= '' and string.sub(dedup, 2) or nil
  local before = there[id] and id or (key and holder(queue, key))
  local outcome
  if before then
    outcome = 'd' .. before
    count(queue, 'duplicates', 1)
  elseif queue.max_waiting and waiting(queue) >= queue.max_waiting then
    outcome = 'f'
    refused = true
  elseif not queue.classes[kind.pair] and not class_of(queue, kind.pair) then
    outcome = 'c'
    refused = true
  elseif key and held_keys(queue) >= max_keys then
    outcome = 'k'
    refused = true
  else
    outcome = kind.outcome
    there[id] = true
    taken[#taken + 1] = i
    if key then
      local till = '-'
      if string.sub(dedup, 1, 1) == 'w' then till = text(queue.now + queue.window) end
      if till == '-' or tonumber(till) > queue.now then queue.new_keys = queue.new_keys + 1 end
      queue.held[key] = id .. ' ' .. till
    end
  end
  outcomes[i] = outcome
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
  local lines, bodies, ids, later, ends, stood, order, taken = {}, {}, {}, {}, {}, {}, {}, queue.taken
  local created = ' ' .. queue.now_text .. ' '
  for n = 1, #taken do
    local i = taken[n]
    local kind, at = kind_of[i], first + ITEM * (i - 1)
    local id, key, dedup = ARGV[at + 2], ARGV[at + 4], ARGV[at + 6]
    if not kind.class then
      kind.class = class_number(queue, kind.pair, max_classes)
      kind.line = 'f:' .. kind.priority .. ':' .. kind.class .. ':'
      kind.middle = kind.middle .. kind.class .. ' '
    end
    kind.number = kind.number + 1
    local place = text(next_place(queue))
    local kept = '- '
    if dedup ~= '' then
      kept = string.sub(dedup, 1, 1) .. ' '
      redis.call('HSET', queue.at .. 'keys', id, string.sub(dedup, 2))
    end
    local field, value = 2 * n - 1, 2 * n
    lines[field], lines[value] = id, kind.front .. place .. kind.middle .. ARGV[at + 5] .. created .. kept .. key
    bodies[field], bodies[value] = id, ARGV[at + 3]
    ids[field], ids[value] = '0', id
    if kind.later then
      later[#later + 1], later[#later + 2] = kind.visible_text, format('%016.0f:%s', queue.place, id)
    else
      local line = kind.line .. key
      local entries = stood[line]
      if not entries then
        entries = { first = place, key = key, kind = kind }
        stood[line] = entries
        order[#order + 1] = line
      end
      entries[#entries + 1] = place .. ':' .. id
    end
    if kind.expires then ends[#ends + 1], ends[#ends + 2] = kind.expires_text, id end
  end
  redis.call('HSET', queue.at .. 'p', unpack(lines))
  redis.call('HSET', queue.at .. 'b', unpack(bodies))
  redis.call('ZADD', queue.at .. 'ids', unpack(ids))
  if #later > 0 then redis.call('ZADD', queue.at .. 'delayed', unpack(later)) end
  if #ends > 0 then redis.call('ZADD', queue.at .. 'ttl', unpack(ends)) end
  local begin, begun, keys = {}, {}, {}
  for _, line in ipairs(order) do
    local entries = stood[line]
    if redis.call('RPUSH', queue.at .. 'r:' .. line, unpack(entries)) == #entries then
      begun[#begun + 1], keys[#keys + 1] = entries, entries.key
      begin[#begin + 1], begin[#begin + 2] = entries.first, line
    end
  end
  if #begin > 0 then
    local texts, fields, active = {}, {}, {}
    for i, lines in ipairs(redis.call('HMGET', queue.at .. 'lines:f', unpack(keys))) do
      local key, kind = keys[i], begun[i].kind
      if not lines and not texts[key] then active[#active + 1] = key end
      texts[key] = with_line(texts[key] or lines, kind.priority .. ':' .. kind.class)
    end
    for key, lines in pairs(texts) do fields[#fields + 1], fields[#fields + 2] = key, lines end
    redis.call('HSET', queue.at .. 'lines:f', unpack(fields))
    redis.call('ZADD', queue.at .. 'heads', unpack(begin))
    if #active > 0 then redis.call('RPUSH', queue.at .. 'ring:f', unpack(active)) end
  end
  for n = 1, kinds_number do
    local kind = kinds[n]
    if kind.queue == queue and kind.number > 0 then redis.call('HINCRBY', queue.at .. 'class:count', kind.class, text(kind.number)) end
  end
  count(queue, 'enqueue', #queue.taken)
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
