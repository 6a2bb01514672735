-- What a lease needs to know of a message that is ready; and how it picks where there is nothing to decide, which is most of the time.

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

-- Until when a key is paused; nothing where it is not.
local function holds(key)
  local till = redis.call('HGET', queue.at .. 'pauses', key)
  if till and (till == 'inf' or tonumber(till) > queue.now) then return till end
  return nil
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

-- A command for any number of values: Lua hands over no more than 8,000 at a time.
local function in_parts(values, ...)
  for from = 1, #values, 1000 do
    local words = { ... }
    for i = from, math.min(from + 999, #values) do words[#words + 1] = values[i] end
    redis.call(unpack(words))
  end
end

-- The messages that this call has picked, how many they are, and whether there may be more.
local picked, taken, more = {}, 0, 0

-- Where at least as many keys wait for their turn as messages are asked for, and in one lane only, each of the first ones hands out its first message,
-- and nothing is left to decide. It is what the turns of `turns.lua` come to, without their tables for each key and each line. Where one of the messages
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

-- Where one key is the only one that waits in the lane and all that it has stands in one line, as where nobody names any keys, the first of that line go out,
-- and nothing is left to decide either. Where one of them cannot be handed out, nothing has happened.
local function pick_from_one_line(name)
  local ring, lines = queue.at .. 'ring:' .. name, queue.at .. 'lines:' .. name
  local key = redis.call('LINDEX', ring, '0')
  local names = redis.call('HGET', lines, key)
  if not names or names == '' or string.find(names, ' ', 1, true) then return false end
  local head = name .. ':' .. names .. ':' .. key
  local line = queue.at .. 'r:' .. head
  -- One more than is wanted, so that it is known whether the line ends when those are taken.
  local entries, ids = redis.call('LRANGE', line, '0', digits(limit)), {}
  local number = math.min(#entries, limit)
  if number == 0 then return false end
  for i = 1, number do ids[i] = string.sub(entries[i], -36) end
  local words, left = redis.call('HMGET', queue.at .. 'p', unpack(ids)), bytes_left
  for i = 1, number do
    local m = words[i] and ready(words[i], ids[i], name, string.sub(entries[i], 1, -38))
    if not m or (m.expires and m.expires <= queue.now) or spent(m) then
      picked = {}
      return false
    end
    -- One goes out, however large it is; the rest come with the next call.
    if m.load > left and i > 1 then
      number = i - 1
      break
    end
    left, picked[i] = left - m.load, m
  end
  redis.call('LPOP', line, digits(number))
  if #entries == number then
    redis.call('LPOP', ring)
    redis.call('HDEL', lines, key)
    redis.call('ZREM', queue.at .. 'heads', head)
  end
  if due_left or #overdue > 0 or #entries > number then more = 1 end
  return true
end

-- Picks where nothing is to be decided, and answers whether that was so.
local function pick_simply()
  if weighted or passes or key_pauses then return false end
  local fresh = serves.f and redis.call('LLEN', queue.at .. 'ring:f') or 0
  local retry = serves.r and retries_left > 0 and redis.call('LLEN', queue.at .. 'ring:r') or 0
  -- Where many are wanted, few of them may fit.
  if retry == 0 and fresh == 1 and limit <= 100 then return pick_from_one_line('f') end
  if limit == 1 then return false end
  if retry == 0 and fresh >= limit then return pick_one_each('f') end
  if fresh == 0 and retry >= limit and retries_left >= limit then return pick_one_each('r') end
  return false
end
