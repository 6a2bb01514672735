-- What every script begins with: the clock, the queues it is about, and how a message is written down.
--
-- KEYS come in pairs, one for each queue: its record, `…{id}:q`, and `…{id}:!`, which never exists. While the slot of the
-- queue is moved to another node of a cluster, a command that names a key which is not there is turned away as a whole, so
-- that no script runs on half of a queue. All other keys of the queue are made from the first one and lie in its slot.
--
-- ARGV[1] is the time, or empty where the clock of the server is asked.

-- What is looked up all the time is looked up once.
local redis, KEYS, ARGV, format = redis, KEYS, ARGV, string.format

local clock = tonumber(ARGV[1])
if not clock then
  local time = redis.call('TIME')
  clock = time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Numbers above 10^14 would be written with an exponent. Whole ones are all that is written here; `%d` takes a quarter of the time, and is too
-- short for a time where the server was built for 32 bits. A number that is handed to a command as a number is written with seventeen
-- digits, which is why texts are handed over where it matters.
local WHOLE = format('%d', 1099511627776) == '1099511627776' and '%d' or '%.0f'
local function text(number)
  return format(WHOLE, number)
end

-- The queue of the nth pair of keys; nothing where it is not there any more.
local function open(n)
  local key = KEYS[2 * n - 1]
  local is = redis.call('HMGET', key, 'stamp', 'floor', 'place', 'leases', 'owed', 'fence')
  if not is[1] then return nil end
  local was = { floor = tonumber(is[2]), place = tonumber(is[3]), leases = tonumber(is[4]), owed = tonumber(is[5]) }
  local now = math.max(clock, was.floor)
  return {
    key = key, at = string.sub(key, 1, -2), stamp = is[1], now = now, now_text = text(now), was = was,
    place = was.place, leases = was.leases, owed = was.owed, fence = is[6], counts = {}, pairs = {}, touched = {},
  }
end

local function count(queue, name, number)
  queue.counts[name] = (queue.counts[name] or 0) + number
end

-- Writes down what a script has changed in the record of a queue.
local function close(queue)
  local was, changed = queue.was, {}
  local function now(name, number)
    if number ~= was[name] then changed[#changed + 1], changed[#changed + 2] = name, text(number) end
  end
  now('floor', queue.now)
  now('place', queue.place)
  now('leases', queue.leases)
  now('owed', queue.owed)
  if #changed > 0 then redis.call('HSET', queue.key, unpack(changed)) end
  for name, number in pairs(queue.counts) do
    if number ~= 0 then redis.call('HINCRBY', queue.key, 'total:' .. name, text(number)) end
  end
end

-- The next place at the back of every line.
local function next_place(queue)
  queue.place = queue.place + 1
  return queue.place
end

-- A key that was taken out of its ring is served again; one that has nothing any more is forgotten.
local function comes_back(queue, lane, key)
  local lines = redis.call('HGET', queue.at .. 'lines:' .. lane, key)
  if lines == '' then
    redis.call('HDEL', queue.at .. 'lines:' .. lane, key)
  elseif lines then
    redis.call('RPUSH', queue.at .. 'ring:' .. lane, key)
  end
end

-- Where a message stands, as one line of words:
--
--   phase visible_at place priority expires_at attempts deliveries deliveries_before redrives max_attempts lease_timeout
--   class load created_at kept key
--
-- and behind it, of a leased one: lease leased_at deadline entry consumer; of a dead one: reason died_at fingerprint; of a
-- done one: done_at. `-` is nothing. `key` and `consumer` begin with a colon and have %XX for white space. `kept` names what
-- else is kept of it, a letter for each: f(ailures), c(heckpoint), n(ote of its redrive), h(ow it died), o(rigin),
-- w(indow) or u(nique) of its dedup key.
--
-- The phases: d(elayed), waiting for its time; r(eady), in a line; l(eased); x, dead; k(ept), done. A capital letter is a message on
-- its way to a queue at another node of a cluster: it is where it was, and nobody touches it.
local WORDS = '^(%a) (%d+) (%d+) (%d) (%S+) (%d+) (%d+) (%d+) (%d+) (%S+) (%S+) (%d+) (%d+) (%d+) (%S+) (%S+) ?(.*)$'

local function parse(line)
  local phase, visible, place, priority, expires, attempts, deliveries, before, redrives, max, time, class, load, created, kept, key, rest =
    string.match(line, WORDS)
  local m = {
    line = line, phase = phase, visible = tonumber(visible), place = tonumber(place), priority = tonumber(priority),
    expires = tonumber(expires), attempts = tonumber(attempts), deliveries = tonumber(deliveries), before = tonumber(before),
    redrives = tonumber(redrives), max = tonumber(max), time = tonumber(time), class = class, load = tonumber(load),
    created = created, kept = kept, key = key,
  }
  if phase == 'l' then
    m.lease, m.leased_at, m.deadline, m.entry, m.consumer = string.match(rest, '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
    m.deadline = tonumber(m.deadline)
  elseif phase == 'x' or phase == 'X' then
    m.reason, m.died_at, m.print = string.match(rest, '^(%S+) (%S+) (%S+)$')
  elseif phase == 'k' or phase == 'K' then
    m.done_at = rest
  end
  return m
end

local function maybe(number)
  if number then return text(number) end
  return '-'
end

local function line_of(m)
  local line = table.concat({ m.phase, text(m.visible), text(m.place), m.priority, maybe(m.expires), m.attempts, m.deliveries,
    m.before, m.redrives, maybe(m.max), maybe(m.time), m.class, m.load, m.created, m.kept, m.key }, ' ')
  if m.phase == 'l' then
    return table.concat({ line, m.lease, m.leased_at, text(m.deadline), m.entry, m.consumer }, ' ')
  elseif m.phase == 'x' or m.phase == 'X' then
    return table.concat({ line, m.reason, m.died_at, m.print }, ' ')
  elseif m.phase == 'k' or m.phase == 'K' then
    return line .. ' ' .. m.done_at
  end
  return line
end

local function keeps(m, letter)
  return string.find(m.kept, letter, 1, true)
end

local function keep(m, letter)
  if m.kept == '-' then
    m.kept = letter
  elseif not keeps(m, letter) then
    m.kept = m.kept .. letter
  end
end

local function drop(m, letter)
  m.kept = string.gsub(m.kept, letter, '')
  if m.kept == '' then m.kept = '-' end
end

local function lane_of(m)
  local charged = m.attempts
  if m.phase == 'l' then charged = charged - 1 end
  if charged <= 0 and m.redrives == 0 then return 'f' end
  return 'r'
end
