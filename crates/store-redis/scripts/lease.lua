-- lease: ready → leased. Who is served next, in the order of the design: lane, fairness, priority, order.
--
-- What is overdue or too old is answered first, and nothing is handed out: to judge that is not ours. Whoever has dealt with
-- it asks again.
--
-- ARGV: time, stamp, limit, lease time, fresh, retry, share, most retries, lease_timeout, max_lease,
-- max_attempts, max_deliveries, the epoch of the numbers that were reserved, most bytes, paused until, whether keys have weights, whether keys are paused, whether it
-- was swept, how many may be, pick, the probe to avoid, the first of those numbers, types, and all of
-- them, and sources; then who asks: of each consumer its name, the same escaped, and how many it wants, which is `limit` in all. Those who ask first are served
-- first. Numbers of leases grow over all queues: a single server counts them in the record of the store, KEYS[3], which
-- has their epoch, too; in a cluster that is elsewhere, and they are reserved before. Whoever asks may not have heard of the epoch of now.
local queue = open(1)
if not queue then return { 'gone' } end
if queue.stamp ~= ARGV[2] then return { 'stale' } end

local limit, asked = tonumber(ARGV[3]), tonumber(ARGV[4])
local serves = { f = ARGV[5] == '1', r = ARGV[6] == '1' }
local share, retries_max = tonumber(ARGV[7]), tonumber(ARGV[8])
local lease_timeout, max_lease, max_attempts, max_deliveries = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
local epoch, bytes_left, paused_until = ARGV[13], tonumber(ARGV[14]), tonumber(ARGV[15])
local weighted, key_pauses, swept, probe, avoid = ARGV[16] == '1', ARGV[17] == '1', ARGV[18] == '1', ARGV[20] == 'probe', ARGV[21]

-- Another call has reserved later numbers and was faster, and ours would not grow; or leases of their epoch are refused by now.
local reserved = tonumber(ARGV[22])
if reserved and (reserved <= queue.leases or epoch < queue.fence) then return { 'late' } end

-- Which classes pass; nothing where all do.
local passes
-- The words about the first who asks are behind this one.
local askers
do
  local kinds, sources = tonumber(ARGV[23]), tonumber(ARGV[24 + tonumber(ARGV[23])])
  askers = 24 + kinds + sources
  if kinds > 0 or sources > 0 then
    local wanted = { {}, {} }
    for i = 1, kinds do wanted[1][ARGV[23 + i]] = true end
    for i = 1, sources do wanted[2][ARGV[24 + kinds + i]] = true end
    passes = {}
    local all = redis.call('HGETALL', queue.at .. 'class:number')
    for i = 1, #all, 2 do
      local kind, source = string.match(all[i], '^(%S*) (%S*)$')
      passes[all[i + 1]] = (kinds == 0 or wanted[1][kind]) and (sources == 0 or wanted[2][source]) or false
    end
  end
end

local due_left = promote(queue)

local overdue = redis.call('ZRANGEBYSCORE', queue.at .. 'deadlines', '-inf', queue.now_text, 'LIMIT', '0', ARGV[19])
if not swept then
  local lapsing = redis.call('ZRANGEBYSCORE', queue.at .. 'ttl', '-inf', queue.now_text, 'LIMIT', '0', ARGV[19])
  if #overdue > 0 or #lapsing > 0 then
    close(queue)
    local found = { {}, {} }
    for _, member in ipairs(overdue) do
      found[1][#found[1] + 1] = judged(queue, message_of(member))
    end
    for _, id in ipairs(lapsing) do found[2][#found[2] + 1] = judged(queue, id) end
    return { 'sweep', queue.now, found[1], found[2] }
  end
end

if paused_until and queue.now < paused_until then
  close(queue)
  return { 'ok', queue.now, 0, {}, {} }
end

local function spent(m)
  if m.plain then return false end
  local max = m.max or max_attempts
  return (max and tonumber(m.attempts) >= max) or (max_deliveries and m.deliveries - m.before >= max_deliveries)
end

local retries_left = math.huge
if retries_max then retries_left = math.max(0, retries_max - redis.call('SCARD', queue.at .. 'retries')) end

-- What a lease needs of a message that is ready. What stays as it is stays in one piece: the words before its counts, and those
-- behind them. What is seldom looked at as a number stays a text.
local READY = '^r (%d+ (%d+) %d (%S+)) (%d+) (%d+) ((%d+) %d+ (%S+) (%S+) %d+ (%d+) %d+ (%S+) %S+)$'

-- The same of one that was never handed out and has no settings of its own, as most: there is little to look at, and little to write down.
-- Nothing is answered of a message that is not ready, or stands elsewhere.
local PLAIN = '^r (%d+ (%d+) %d %-) 0 0 (0 0 %- %- %d+ (%d+) %d+ %- %S+)$'

local function ready(line, id, lane, place)
  local front, at, back, weight = string.match(line, PLAIN)
  if front then
    return at == place and { id = id, lane = lane, head = front, place = at, tail = back, load = tonumber(weight), plain = true }
  end
  local head, stood, expires, attempts, deliveries, tail, before, max, time, load, kept = string.match(line, READY)
  if stood ~= place then return false end
  return {
    id = id, lane = lane, head = head, place = place, expires = expires ~= '-' and tonumber(expires), attempts = attempts,
    deliveries = deliveries, tail = tail, before = before, max = max ~= '-' and tonumber(max), time = time ~= '-' and tonumber(time),
    load = tonumber(load), kept = kept,
  }
end

-- Small numbers as texts: a call has the same ones for many lines.
local written = {}
local function digits(number)
  local word = written[number]
  if not word then
    word = text(number)
    written[number] = word
  end
  return word
end

-- A line from which this call takes knows what is first in it, read ahead, and how much of it was passed; a key knows its lines. All that
-- these tables will ever hold is in them from the beginning, because one that grows is made anew, and what is done with them are functions and
-- no methods, which would be looked up twice.

-- Reads on, and one entry more than is wanted, so that it is known whether the line ends when those are taken.
local function read_on(line)
  local chunk, passed = line.chunk, line.passed
  local entries = redis.call('LRANGE', line.key, digits(passed), digits(passed + chunk))
  local number = #entries
  line.entries, line.ahead, line.next, line.chunk = entries, {}, 1, 2 * chunk
  if line.chunk > 100 then line.chunk = 100 end
  if number > chunk then
    line.wanted, line.over = chunk, false
  else
    line.wanted, line.over = number, true
  end
end

-- The words of what these lines have read ahead, in one look.
local function fetch(lines)
  local ids, n, sub = {}, 0, string.sub
  for l = 1, #lines do
    local line = lines[l]
    local entries = line.entries
    if line.wanted < line.next and entries[line.next] then line.wanted = line.next end
    for i = #line.ahead + 1, line.wanted do
      n = n + 1
      ids[n] = sub(entries[i], -36)
    end
  end
  if n == 0 then return end
  local words = redis.call('HMGET', queue.at .. 'p', unpack(ids))
  n = 0
  for l = 1, #lines do
    local line = lines[l]
    local entries, ahead, lane = line.entries, line.ahead, line.lane
    for i = #ahead + 1, line.wanted do
      n = n + 1
      ahead[i] = words[n] and ready(words[n], ids[n], lane, sub(entries[i], 1, -38))
    end
  end
end

-- How many messages a call passes that cannot be handed out any more. Whoever finds that many asks again.
local to_pass = 1000

local function pass(line)
  line.next, line.passed = line.next + 1, line.passed + 1
end

-- The first message of a line that may be handed out. What cannot be any more is passed: it lapses, or is put aside until a cap
-- is raised.
local function first_of(line)
  while to_pass > 0 do
    if not line.entries[line.next] then
      if line.over then return nil end
      read_on(line)
      if #line.entries == 0 then return nil end
    end
    if line.ahead[line.next] == nil then fetch({ line }) end
    local m = line.ahead[line.next]
    if m then
      if m.expires and m.expires <= queue.now then
        pass(line)
      elseif spent(m) then
        redis.call('ZADD', queue.at .. 'over', m.place, m.id)
        redis.call('HINCRBY', queue.key, 'capped', 1)
        pass(line)
      else
        return m
      end
    else
      pass(line)
    end
    to_pass = to_pass - 1
  end
  return nil
end

-- What a line has read before it has read anything.
local NOTHING = {}

local function add_line(entry, name)
  entry.number = entry.number + 1
  if not passes or passes[string.sub(name, 3)] then
    local line = entry.lane .. ':' .. name .. ':' .. entry.key
    entry.lines[#entry.lines + 1] = {
      key = queue.at .. 'r:' .. line, line = line, name = name, lane = entry.lane, entries = NOTHING, ahead = NOTHING, next = 1, passed = 0,
      wanted = 0, chunk = entry.chunk, over = false,
    }
  end
end

local function open_key(entry)
  if entry.lines then return end
  entry.lines = {}
  if not entry.names or entry.names == '' then return end
  -- Most have one.
  if not string.find(entry.names, ' ', 1, true) then return add_line(entry, entry.names) end
  for name in string.gmatch(entry.names, '%S+') do add_line(entry, name) end
end

-- The next message of a key: of the highest priority, and of those the one with the first place.
local function first_of_key(entry)
  if not entry.lines then open_key(entry) end
  local lines = entry.lines
  local from = lines[1]
  if not from then return nil end
  local first = first_of(from)
  for i = 2, #lines do
    local line = lines[i]
    -- A priority is one digit.
    if first and string.byte(line.name) < string.byte(from.name) then break end
    local m = first_of(line)
    if m and (not first or tonumber(m.place) < tonumber(first.place)) then first, from = m, line end
  end
  return first, from
end

-- The keys of a lane, in their turns.
local Lane = {}
Lane.__index = Lane

local function lane(name)
  return setmetatable({ name = name, ring = queue.at .. 'ring:' .. name, keys = {}, at = 1, read = 0, rotated = {}, opened = {}, ended = false }, Lane)
end

-- The messages that this call has picked, and how many they are.
local picked, taken = {}, 0

-- How many turns are over.
local turn = 0

-- Looks at what those are about to hand out who have their turn next, all of them in one look.
local function look_ahead(keys)
  local lines = {}
  for i = 1, #keys do
    local entry = keys[i]
    open_key(entry)
    local line = entry.lines[1]
    if line then
      read_on(line)
      lines[#lines + 1] = line
    end
  end
  fetch(lines)
end

function Lane:more()
  if not self.over then
    local wanted = math.min(math.max(limit - taken, 1), 100)
    local keys = redis.call('LRANGE', self.ring, digits(self.read), digits(self.read + wanted - 1))
    self.read, self.over = self.read + #keys, #keys < wanted
    if #keys > 0 then
      -- Each of them is served as often as the others.
      local chunk = math.ceil(wanted / #keys)
      self.keys, self.at = {}, 1
      local lines = redis.call('HMGET', queue.at .. 'lines:' .. self.name, unpack(keys))
      local opened = self.opened
      for i = 1, #keys do
        local entry = {
          key = keys[i], names = lines[i], lane = self.name, chunk = chunk, lines = false, number = 0, turn = false, done = false,
        }
        self.keys[i], opened[#opened + 1] = entry, entry
      end
      if not key_pauses and not passes then look_ahead(self.keys) end
      return true
    end
  end
  -- All have had their turn; those that had it first are next.
  if #self.rotated == 0 then return false end
  self.keys, self.at, self.rotated = self.rotated, 1, {}
  return true
end

local function holds(key)
  local till = redis.call('HGET', queue.at .. 'pauses', key)
  if till and (till == 'inf' or tonumber(till) > queue.now) then return till end
  return nil
end

-- The message that the lane serves next, for which nothing was charged yet. Keys that have nothing for this call keep their turn.
local function next_of(self)
  if self.best then return self.best end
  if self.ended then return nil end
  while to_pass > 0 do
    local entry = self.keys[self.at]
    if not entry then
      if not self:more() then
        self.ended = true
        return nil
      end
    elseif entry.done then
      self.at = self.at + 1
    else
      local till = key_pauses and holds(entry.key)
      if till then
        redis.call('ZADD', queue.at .. 'parked:' .. self.name, till, entry.key)
        entry.done, entry.parked = true, true
      else
        local first, from = first_of_key(entry)
        if first then
          self.best, self.line, self.entry = first, from, entry
          return first
        end
        entry.done = true
        -- Nothing stands in any line of it, and it is about to go: that is a step, too.
        if entry.number == 0 then to_pass = to_pass - 1 end
      end
    end
  end
  return nil
end

local function take(self)
  pass(self.line)
  self.best = nil
  local entry = self.entry
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
  turn = turn + 1
  entry.turn = turn
  self.at = self.at + 1
  self.rotated[#self.rotated + 1] = entry
end

-- Whether nobody but the one that was just served may have a turn in this lane, and all that it has stands in one line.
function Lane:is_alone()
  return self.over and self.read == 1 and #self.entry.lines == 1
end

-- Those that follow the one that was just taken, as far as they are like most, where nobody else may have a turn.
function Lane:run(bytes_left)
  local line = self.line
  local ahead, n, count = line.ahead, line.next, 0
  while taken < limit do
    local m = ahead[n]
    if not m or not m.plain or m.load > bytes_left then break end
    bytes_left = bytes_left - m.load
    n, count, taken = n + 1, count + 1, taken + 1
    picked[taken] = m
  end
  line.next, line.passed = n, line.passed + count
  return bytes_left
end

-- A command for any number of values: Lua hands over no more than 8,000 at a time.
local function in_parts(values, ...)
  for from = 1, #values, 1000 do
    local words = { ... }
    for i = from, math.min(from + 999, #values) do words[#words + 1] = values[i] end
    redis.call(unpack(words))
  end
end

-- Whether something stands behind what was taken, as far as this call has looked.
function Lane:has_next()
  for i = #self.opened, 1, -1 do
    for _, line in ipairs(self.opened[i].lines or NOTHING) do
      if line.entries[line.next] then return true end
    end
  end
  return false
end

-- Writes down what was taken from the lines of a lane, and whose turn it is.
function Lane:flush()
  local turned, gone, kept, ended, left, none = {}, {}, {}, {}, {}, {}
  -- How many keys of the ring are to be moved, or are passed by others that are.
  local moved, in_order = 0, true
  local opened = self.opened
  for i = 1, #opened do
    local entry = opened[i]
    local emptied, lines = 0, entry.lines or NOTHING
    for l = 1, #lines do
      local line = lines[l]
      if line.passed > 0 then
        redis.call('LPOP', line.key, digits(line.passed))
        if not line.entries[line.next] and (line.over or redis.call('EXISTS', line.key) == 0) then
          entry.names = without_line(entry.names, line.name)
          ended[#ended + 1] = line.line
          emptied = emptied + 1
        end
      end
    end
    if emptied > 0 and entry.names then
      left[#left + 1], left[#left + 2] = entry.key, entry.names
    elseif emptied > 0 or (entry.lines and entry.names == '') then
      none[#none + 1] = entry.key
    end
    if entry.parked or (entry.lines and entry.number == emptied) then
      gone[#gone + 1] = entry.key
      moved = i
    elseif entry.turn then
      if #turned > 0 and turned[#turned].turn > entry.turn then in_order = false end
      turned[#turned + 1] = entry
      moved = i
    else
      kept[#kept + 1] = i
    end
    if entry.turned then
      if entry.left then
        redis.call('HSET', queue.at .. 'turns:' .. self.name, entry.key, entry.left)
      else
        redis.call('HDEL', queue.at .. 'turns:' .. self.name, entry.key)
      end
    end
  end
  in_parts(ended, 'ZREM', queue.at .. 'heads')
  in_parts(left, 'HSET', queue.at .. 'lines:' .. self.name)
  in_parts(none, 'HDEL', queue.at .. 'lines:' .. self.name)
  if moved > 0 then
    -- Those that keep their turn stay in front, and those that had it are behind all others, in that order.
    local front = {}
    for i = #kept, 1, -1 do
      if kept[i] < moved then front[#front + 1] = opened[kept[i]].key end
    end
    if not in_order then table.sort(turned, function(a, b) return a.turn < b.turn end) end
    for i = 1, #turned do turned[i] = turned[i].key end
    redis.call('LTRIM', self.ring, digits(moved), '-1')
    in_parts(front, 'LPUSH', self.ring)
    in_parts(turned, 'RPUSH', self.ring)
  end
  if weighted then in_parts(gone, 'HDEL', queue.at .. 'turns:' .. self.name) end
end

-- Keys whose pause is over are served again.
local function unpark(name)
  local parked = queue.at .. 'parked:' .. name
  for _, key in ipairs(redis.call('ZRANGEBYSCORE', parked, '-inf', queue.now_text, 'LIMIT', '0', '1000')) do
    redis.call('ZREM', parked, key)
    comes_back(queue, name, key)
  end
end

local more = 0

-- Where at least as many keys wait for their turn as messages are asked for, and in one lane only, each of the first ones hands out its first message,
-- and nothing is left to decide. It is what the turns below come to, without their tables for each key and each line. Where one of the messages
-- cannot be handed out, or they are too large together, all of them are put back, and nothing has happened.
local function pick_one_each(name)
  local ring, lines = queue.at .. 'ring:' .. name, queue.at .. 'lines:' .. name
  local keys = redis.call('LRANGE', ring, '0', digits(limit - 1))
  local named, heads, lists = redis.call('HMGET', lines, unpack(keys)), {}, {}
  for i = 1, limit do
    local names = named[i]
    -- A key of several lines compares what is first in them.
    if not names or names == '' or string.find(names, ' ', 1, true) then return false end
    heads[i] = name .. ':' .. names .. ':' .. keys[i]
    lists[i] = queue.at .. 'r:' .. heads[i]
  end
  local entries, ids = {}, {}
  local function put_back(most)
    for i = 1, most do redis.call('LPUSH', lists[i], entries[i]) end
    picked = {}
    return false
  end
  for i = 1, limit do
    local entry = redis.call('LPOP', lists[i])
    if not entry then return put_back(i - 1) end
    entries[i], ids[i] = entry, string.sub(entry, -36)
  end
  local words, left = redis.call('HMGET', queue.at .. 'p', unpack(ids)), bytes_left
  for i = 1, limit do
    local m = words[i] and ready(words[i], ids[i], name, string.sub(entries[i], 1, -38))
    if not m or (m.expires and m.expires <= queue.now) or spent(m) or m.load > left then return put_back(limit) end
    left, picked[i] = left - m.load, m
  end
  local ended, none, turned = {}, {}, keys
  if redis.call('EXISTS', unpack(lists)) < limit then
    turned = {}
    for i = 1, limit do
      if redis.call('EXISTS', lists[i]) == 1 then
        turned[#turned + 1] = keys[i]
      else
        ended[#ended + 1], none[#none + 1] = heads[i], keys[i]
      end
    end
  end
  in_parts(ended, 'ZREM', queue.at .. 'heads')
  in_parts(none, 'HDEL', lines)
  redis.call('LTRIM', ring, digits(limit), '-1')
  in_parts(turned, 'RPUSH', ring)
  if due_left or #overdue > 0 or ((name == 'f' or retries_left > limit) and redis.call('EXISTS', ring) == 1) then more = 1 end
  return true
end

-- Whether each key hands out one message, because nobody else is to be looked at.
local function is_one_each()
  if limit == 1 or weighted or passes or key_pauses then return false end
  local fresh = serves.f and redis.call('LLEN', queue.at .. 'ring:f') or 0
  local retry = serves.r and retries_left > 0 and redis.call('LLEN', queue.at .. 'ring:r') or 0
  if retry == 0 and fresh >= limit then return pick_one_each('f') end
  if fresh == 0 and retry >= limit and retries_left >= limit then return pick_one_each('r') end
  return false
end

local function pick_fairly()
  local lanes = { f = lane('f'), r = lane('r') }
  if key_pauses or redis.call('EXISTS', queue.at .. 'parked:f', queue.at .. 'parked:r') > 0 then
    unpark('f')
    unpark('r')
  end
  if is_one_each() then return end
  local full = false
  local function next_lane()
    local fresh = serves.f and next_of(lanes.f)
    local retry = serves.r and retries_left > 0 and next_of(lanes.r)
    if fresh and retry then
      local owed = queue.owed + share
      if owed >= 1000000 then return 'r', retry, owed - 1000000 end
      return 'f', fresh, owed
    end
    if fresh then return 'f', fresh, queue.owed, not retry and to_pass > 0 end
    if retry then return 'r', retry, queue.owed end
    return nil
  end
  while taken < limit do
    local name, m, owed, only = next_lane()
    if not name then break end
    if m.load > bytes_left and taken > 0 then
      full = true
      break
    end
    bytes_left = math.max(0, bytes_left - m.load)
    if name == 'r' then retries_left = retries_left - 1 end
    queue.owed = owed
    take(lanes[name])
    taken = taken + 1
    picked[taken] = m
    if only and not weighted and lanes.f:is_alone() then bytes_left = lanes.f:run(bytes_left) end
  end
  if full or due_left or #overdue > 0 or (serves.f and lanes.f:has_next()) or next_lane() or to_pass == 0 then more = 1 end
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
    if not m or m.phase ~= 'r' or not takes(m) or (key_pauses and holds(m.key)) or spent(m) or (m.expires and m.expires <= queue.now) then return end
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

if probe then pick_probe() else pick_fairly() end

-- Of each message its id and its line; and what else is kept of whom, under which letter. Both are flat: a table for each message
-- would cost as much as its commands. Contents are added where they are few: each byte that passes through a script is looked at twice, so
-- whoever asked for many reads them without it.
local FEW, SMALL = 32, 65536
local answer, kept, contents = {}, {}, nil
if #picked > 0 then
  local lines, deadlines, retries, timed = {}, {}, {}, {}
  local number = (reserved or redis.call('HINCRBY', KEYS[3], 'leases', text(#picked)) - #picked + 1) - 1
  queue.leases = number + #picked
  local stream, now, until_when, until_text = queue.at .. 's', queue.now_text, nil, nil
  if not reserved then epoch = format('%04x', redis.call('HGET', KEYS[3], 'epoch')) end
  local name = epoch .. '%012x'
  local asker, wants = askers - 3, 0
  local reads, ids, load = {}, {}, 0
  for i = 1, #picked do
    local m = picked[i]
    local id = m.id
    ids[i], load = id, load + m.load
    if wants == 0 then
      asker = asker + 3
      wants = tonumber(ARGV[asker + 3])
      reads[#reads + 1] = { ARGV[asker + 1], math.min(wants, #picked - i + 1) }
    end
    wants = wants - 1
    if m.lane == 'r' then retries[#retries + 1] = id end
    if m.expires then timed[#timed + 1] = id end
    local lease = format(name, number + i)
    local time = asked or m.time or lease_timeout
    -- A number is written out wherever it goes; most leases of a call end together.
    if time ~= until_when then
      until_when, until_text = time, text(math.min(queue.now + math.min(time, max_lease), 253402300799999))
    end
    local entry = redis.call('XADD', stream, '*', 'message', id)
    local counts = m.plain and ' 1 1 ' or ' ' .. text(m.attempts + 1) .. ' ' .. text(m.deliveries + 1) .. ' '
    local line = 'l ' .. m.head .. counts .. m.tail .. ' ' .. lease .. ' ' .. now .. ' ' .. until_text .. ' ' .. entry .. ' '
      .. ARGV[asker + 2]
    lines[2 * i - 1], lines[2 * i] = id, line
    deadlines[2 * i - 1], deadlines[2 * i] = until_text, deadline_of(lease, id, entry)
    if m.kept and m.kept ~= '-' then
      for letter in string.gmatch(m.kept, '%a') do
        local n = #kept
        kept[n + 1], kept[n + 2], kept[n + 3] = i, letter, redis.call('HGET', queue.at .. KEPT[letter], id)
      end
    end
  end
  -- The group gives out entries in the order in which they came.
  for _, read in ipairs(reads) do
    redis.call('XREADGROUP', 'GROUP', 'redrive', read[1], 'COUNT', read[2], 'STREAMS', stream, '>')
  end
  redis.call('HSET', queue.at .. 'p', unpack(lines))
  redis.call('ZADD', queue.at .. 'deadlines', unpack(deadlines))
  if #timed > 0 then redis.call('ZREM', queue.at .. 'ttl', unpack(timed)) end
  if #retries > 0 then
    redis.call('ZREM', queue.at .. 'tries', unpack(retries))
    redis.call('SADD', queue.at .. 'retries', unpack(retries))
  end
  answer = lines
  if #picked <= FEW and load <= SMALL then contents = redis.call('HMGET', queue.at .. 'b', unpack(ids)) end
  count(queue, 'lease', #picked)
end
close(queue)
return { 'ok', queue.now, more, answer, kept, contents }
