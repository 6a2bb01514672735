-- lease: ready → leased. Who is served next, in the order of the design: lane, fairness, priority, order.
--
-- What is overdue or too old is answered first, and nothing is handed out: to judge that is not ours. Whoever has dealt with
-- it asks again.
--
-- ARGV: time, stamp, limit, consumer, its escaped name, lease time, fresh, retry, share, most retries, lease_timeout, max_lease,
-- max_attempts, max_deliveries, epoch, most bytes, paused until, whether keys have weights, whether keys are paused, whether it
-- was swept, how many may be, pick, the probe to avoid, the first of the numbers that were reserved for its leases, types, and all of
-- them, and sources. Numbers of leases grow over all queues: a single server counts them in the record of the store, KEYS[3]; in a
-- cluster that is elsewhere, and they are reserved before.
local queue = open(1)
if not queue then return { 'gone' } end
if queue.stamp ~= ARGV[2] then return { 'stale' } end

local limit, consumer, escaped, asked = tonumber(ARGV[3]), ARGV[4], ARGV[5], tonumber(ARGV[6])
local serves = { f = ARGV[7] == '1', r = ARGV[8] == '1' }
local share, retries_max = tonumber(ARGV[9]), tonumber(ARGV[10])
local lease_timeout, max_lease, max_attempts, max_deliveries = tonumber(ARGV[11]), tonumber(ARGV[12]), tonumber(ARGV[13]), tonumber(ARGV[14])
local epoch, bytes_left, paused_until = ARGV[15], tonumber(ARGV[16]), tonumber(ARGV[17])
local weighted, key_pauses, swept, settles, probe, avoid = ARGV[18] == '1', ARGV[19] == '1', ARGV[20] == '1', tonumber(ARGV[21]), ARGV[22] == 'probe', ARGV[23]

-- Another call has reserved later numbers and was faster: ours would not grow.
local reserved = tonumber(ARGV[24])
if reserved and reserved <= queue.leases then return { 'late' } end

-- Which classes pass; nothing where all do.
local passes
do
  local kinds, sources = tonumber(ARGV[25]), tonumber(ARGV[26 + tonumber(ARGV[25])])
  if kinds > 0 or sources > 0 then
    local wanted = { {}, {} }
    for i = 1, kinds do wanted[1][ARGV[25 + i]] = true end
    for i = 1, sources do wanted[2][ARGV[26 + kinds + i]] = true end
    passes = {}
    local all = redis.call('HGETALL', queue.at .. 'class:number')
    for i = 1, #all, 2 do
      local kind, source = string.match(all[i], '^(%S*) (%S*)$')
      passes[all[i + 1]] = (kinds == 0 or wanted[1][kind]) and (sources == 0 or wanted[2][source]) or false
    end
  end
end

local due_left = promote(queue)

local overdue = redis.call('ZRANGEBYSCORE', queue.at .. 'deadlines', '-inf', queue.now, 'LIMIT', 0, settles)
if not swept then
  local lapsing = redis.call('ZRANGEBYSCORE', queue.at .. 'ttl', '-inf', queue.now, 'LIMIT', 0, settles)
  if #overdue > 0 or #lapsing > 0 then
    close(queue)
    local found = { {}, {} }
    for _, member in ipairs(overdue) do
      found[1][#found[1] + 1] = judged(queue, string.sub(member, 18))
    end
    for _, id in ipairs(lapsing) do found[2][#found[2] + 1] = judged(queue, id) end
    return { 'sweep', queue.now, found[1], found[2] }
  end
end

if paused_until and queue.now < paused_until then
  close(queue)
  return { 'ok', queue.now, 0, {} }
end

local function spent(m)
  local max = m.max or max_attempts
  return (max and m.attempts >= max) or (max_deliveries and m.deliveries - m.before >= max_deliveries)
end

local retries_left = math.huge
if retries_max then retries_left = math.max(0, retries_max - redis.call('SCARD', queue.at .. 'retries')) end

-- A line from which this call takes: what is first in it, read ahead, and how much of it was passed.
local Line = {}
Line.__index = Line

-- The first message of a line that may be handed out. What cannot be any more is passed: it lapses, or is put aside until a cap
-- is raised.
function Line:peek()
  while true do
    local ahead = self.ahead[self.next]
    if not ahead then
      if self.over then return nil end
      local from = self.passed
      local entries = redis.call('LRANGE', self.key, from, from + self.chunk - 1)
      if #entries < self.chunk then self.over = true end
      if #entries == 0 then return nil end
      local ids = {}
      for i, entry in ipairs(entries) do ids[i] = string.match(entry, '^%d+:(.*)$') end
      local lines = redis.call('HMGET', queue.at .. 'p', unpack(ids))
      self.ahead, self.next = {}, 1
      for i, entry in ipairs(entries) do
        self.ahead[i] = { id = ids[i], place = tonumber(string.match(entry, '^%d+')), line = lines[i] }
      end
      ahead = self.ahead[1]
    end
    if not ahead.m then ahead.m = ahead.line and parse(ahead.line) end
    local m = ahead.m
    if m and m.phase == 'r' and m.place == ahead.place then
      if m.expires and m.expires <= queue.now then
        self:pass()
      elseif spent(m) then
        redis.call('ZADD', queue.at .. 'over', m.place, ahead.id)
        redis.call('HINCRBY', queue.key, 'capped', 1)
        self:pass()
      else
        return ahead
      end
    else
      self:pass()
    end
  end
end

function Line:pass()
  self.next, self.passed = self.next + 1, self.passed + 1
end

-- A key and its lines.
local Key = {}
Key.__index = Key

function Key:open()
  if self.lines then return end
  self.lines = {}
  for _, line in ipairs(redis.call('ZRANGE', queue.at .. 'l:' .. self.lane .. ':' .. self.key, 0, -1)) do
    local priority, class = string.match(line, '^(%d):(%d+)$')
    self.any = true
    if not passes or passes[class] then
      table.insert(self.lines, setmetatable({
        key = queue.at .. 'r:' .. self.lane .. ':' .. line .. ':' .. self.key, priority = tonumber(priority), class = class,
        ahead = {}, next = 1, passed = 0, chunk = math.min(limit, 100),
      }, Line))
    end
  end
end

-- The next message of a key: of the highest priority, and of those the one with the first place.
function Key:peek()
  self:open()
  local best
  for _, line in ipairs(self.lines) do
    if not best or line.priority >= best.line.priority then
      local ahead = line:peek()
      if ahead and (not best or line.priority > best.line.priority or ahead.place < best.ahead.place) then
        best = { line = line, ahead = ahead }
      end
    end
  end
  return best
end

-- The keys of a lane, in their turns.
local Lane = {}
Lane.__index = Lane

local function lane(name)
  return setmetatable({ name = name, ring = queue.at .. 'ring:' .. name, keys = {}, at = 1, read = 0, rotated = {}, opened = {} }, Lane)
end

function Lane:more()
  local keys = redis.call('ZRANGE', self.ring, self.read, self.read + math.min(limit, 100) - 1)
  self.read = self.read + #keys
  for _, key in ipairs(keys) do
    local entry = setmetatable({ key = key, lane = self.name }, Key)
    table.insert(self.keys, entry)
    table.insert(self.opened, entry)
  end
  if #keys == 0 then
    -- All have had their turn; those that had it first are next.
    if #self.rotated == 0 then return false end
    for _, entry in ipairs(self.rotated) do table.insert(self.keys, entry) end
    self.rotated = {}
  end
  return true
end

local function holds(key)
  if not key_pauses then return nil end
  local till = redis.call('HGET', queue.at .. 'pauses', key)
  if till and (till == 'inf' or tonumber(till) > queue.now) then return till end
  return nil
end

-- The message that the lane serves next, for which nothing was charged yet. Keys that have nothing for this call keep their turn.
function Lane:peek()
  if self.best then return self.best end
  while true do
    local entry = self.keys[self.at]
    if not entry then
      if not self:more() then return nil end
    elseif entry.done then
      self.at = self.at + 1
    else
      local till = holds(entry.key)
      if till then
        redis.call('ZADD', queue.at .. 'parked:' .. self.name, till, entry.key)
        entry.done, entry.parked = true, true
      else
        local best = entry:peek()
        if best then
          best.entry = entry
          self.best = best
          return best
        end
        entry.done = true
      end
    end
  end
end

function Lane:take()
  local best = self.best
  best.line:pass()
  self.best = nil
  local entry = best.entry
  if weighted then
    local weight = tonumber(redis.call('HGET', queue.at .. 'weights', entry.key) or '1')
    local left = entry.left
    if not entry.turned then left = tonumber(redis.call('HGET', queue.at .. 'turns:' .. self.name, entry.key) or weight) end
    left = left or weight
    left = math.min(left, weight) - 1
    entry.left, entry.turned = left, true
    if left > 0 then return end
    entry.left = nil
  end
  -- Its turn is over: it goes behind all others.
  queue.turn = queue.turn + 1
  entry.score = queue.turn
  table.remove(self.keys, self.at)
  table.insert(self.rotated, entry)
end

-- Writes down what was taken from the lines of a lane, and whose turn it is.
function Lane:flush()
  local turned, gone = {}, {}
  for _, entry in ipairs(self.opened) do
    local key = queue.at .. 'l:' .. self.name .. ':' .. entry.key
    local emptied
    for _, line in ipairs(entry.lines or {}) do
      if line.passed > 0 then
        redis.call('LPOP', line.key, line.passed)
        local head = line.ahead[line.next]
        local place = head and head.place
        if not place and not line.over then
          local entry_ahead = redis.call('LINDEX', line.key, 0)
          place = entry_ahead and tonumber(string.match(entry_ahead, '^%d+'))
        end
        local name = line.priority .. ':' .. line.class
        if place then
          redis.call('ZADD', key, (9 - line.priority) * PRIORITY + place, name)
          redis.call('ZADD', queue.at .. 'heads', place, self.name .. ':' .. name .. ':' .. entry.key)
        else
          redis.call('ZREM', key, name)
          redis.call('ZREM', queue.at .. 'heads', self.name .. ':' .. name .. ':' .. entry.key)
          emptied = true
        end
      end
    end
    if entry.parked or (entry.lines and not entry.any) or (emptied and redis.call('EXISTS', key) == 0) then
      gone[#gone + 1] = entry.key
    elseif entry.score then
      turned[#turned + 1] = entry.score
      turned[#turned + 1] = entry.key
    end
    if entry.turned then
      if entry.left then
        redis.call('HSET', queue.at .. 'turns:' .. self.name, entry.key, entry.left)
      else
        redis.call('HDEL', queue.at .. 'turns:' .. self.name, entry.key)
      end
    end
  end
  if #turned > 0 then redis.call('ZADD', self.ring, unpack(turned)) end
  if #gone > 0 then
    redis.call('ZREM', self.ring, unpack(gone))
    if weighted then redis.call('HDEL', queue.at .. 'turns:' .. self.name, unpack(gone)) end
  end
end

-- Keys whose pause is over are served again.
local function unpark(name)
  local parked = queue.at .. 'parked:' .. name
  for _, key in ipairs(redis.call('ZRANGEBYSCORE', parked, '-inf', queue.now, 'LIMIT', 0, 1000)) do
    redis.call('ZREM', parked, key)
    if redis.call('EXISTS', queue.at .. 'l:' .. name .. ':' .. key) == 1 then
      queue.turn = queue.turn + 1
      redis.call('ZADD', queue.at .. 'ring:' .. name, 'NX', queue.turn, key)
    end
  end
end

local picked = {}
local more = 0

local function pick_fairly()
  local lanes = { f = lane('f'), r = lane('r') }
  if key_pauses or redis.call('EXISTS', queue.at .. 'parked:f', queue.at .. 'parked:r') > 0 then
    unpark('f')
    unpark('r')
  end
  local full = false
  local function next_lane()
    local fresh = serves.f and lanes.f:peek()
    local retry = serves.r and retries_left > 0 and lanes.r:peek()
    if fresh and retry then
      local owed = queue.owed + share
      if owed >= 1000000 then return 'r', retry, owed - 1000000 end
      return 'f', fresh, owed
    end
    if fresh then return 'f', fresh, queue.owed end
    if retry then return 'r', retry, queue.owed end
    return nil
  end
  while #picked < limit do
    local name, best, owed = next_lane()
    if not name then break end
    local m = best.ahead.m
    if m.load > bytes_left and #picked > 0 then
      full = true
      break
    end
    bytes_left = math.max(0, bytes_left - m.load)
    if name == 'r' then retries_left = retries_left - 1 end
    queue.owed = owed
    lanes[name]:take()
    picked[#picked + 1] = best.ahead
  end
  if full or due_left or #overdue > 0 or next_lane() then more = 1 end
  lanes.f:flush()
  lanes.r:flush()
end

local function takes(m)
  return not passes or passes[m.class]
end

-- One message to see whether an outage is over: with the fewest attempts, and another than the last where there is another.
local function pick_probe()
  -- The first that is found is the best; whether there is another is all that is of interest after it.
  local best, kept, others
  local function try(id)
    local line = redis.call('HGET', queue.at .. 'p', id)
    local m = line and parse(line)
    if not m or m.phase ~= 'r' or not takes(m) or holds(m.key) or spent(m) or (m.expires and m.expires <= queue.now) then return end
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
  for _, line in ipairs(redis.call('ZRANGE', queue.at .. 'heads', 0, -1)) do
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
    picked[1] = found
  end
  if due_left or #overdue > 0 or enough() then more = 1 end
end

if probe then pick_probe() else pick_fairly() end

local answer = {}
if #picked > 0 then
  local lines, deadlines, ids, letters = {}, {}, {}, {}
  local number = (reserved or redis.call('HINCRBY', KEYS[3], 'leases', #picked) - #picked + 1) - 1
  queue.leases = number + #picked
  for i, one in ipairs(picked) do
    local m, id = one.m, one.id
    if lane_of(m) == 'r' then
      redis.call('ZREM', queue.at .. 'tries', id)
      redis.call('SADD', queue.at .. 'retries', id)
    end
    if m.expires then redis.call('ZREM', queue.at .. 'ttl', id) end
    m.phase, m.attempts, m.deliveries = 'l', m.attempts + 1, m.deliveries + 1
    m.lease = epoch .. string.format('%012x', number + i)
    m.leased_at = text(queue.now)
    m.deadline = math.min(queue.now + math.min(asked or m.time or lease_timeout, max_lease), 253402300799999)
    m.entry = redis.call('XADD', queue.at .. 's', '*', 'message', id, 'lease', m.lease)
    m.consumer = escaped
    local line = line_of(m)
    lines[2 * i - 1], lines[2 * i] = id, line
    deadlines[2 * i - 1], deadlines[2 * i] = m.deadline, m.lease .. ':' .. id
    ids[i] = id
    answer[i] = { id, line }
    if m.kept ~= '-' then
      for letter in string.gmatch(m.kept, '%a') do
        letters[#letters + 1] = { i, letter, redis.call('HGET', queue.at .. KEPT[letter], id) }
      end
    end
  end
  redis.call('XREADGROUP', 'GROUP', 'redrive', consumer, 'COUNT', #picked, 'STREAMS', queue.at .. 's', '>')
  redis.call('HSET', queue.at .. 'p', unpack(lines))
  redis.call('ZADD', queue.at .. 'deadlines', unpack(deadlines))
  for i, body in ipairs(redis.call('HMGET', queue.at .. 'b', unpack(ids))) do answer[i][3] = body end
  for _, kept in ipairs(letters) do
    table.insert(answer[kept[1]], kept[2])
    table.insert(answer[kept[1]], kept[3])
  end
  count(queue, 'lease', #picked)
end
close(queue)
return { 'ok', queue.now, more, answer }
