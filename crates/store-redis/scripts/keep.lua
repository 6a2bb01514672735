-- What is kept of a message beside its line of words, what it holds, and how it goes.

-- Under which member of `deadlines` a lease is found: `lease:id:entry`. With the entry of the stream behind it it is longer than 64 bytes, and what
-- holds longer ones the server never keeps as a list that it walks through: for a hundred leases of a queue that had none that took five times as long.
local function deadline_of(lease, id, entry)
  return lease .. ':' .. id .. ':' .. entry
end

-- The message of such a member.
local function message_of(member)
  return string.sub(member, 18, 53)
end

-- Takes away what a lease left: its entry in the stream, its deadline.
local function unlease(queue, id, m)
  redis.call('XACK', queue.at .. 's', 'redrive', m.entry)
  redis.call('XDEL', queue.at .. 's', m.entry)
  redis.call('ZREM', queue.at .. 'deadlines', deadline_of(m.lease, id, m.entry))
  if lane_of(m) == 'r' then redis.call('SREM', queue.at .. 'retries', id) end
end

-- Takes entries out of the stream that are in the group no more. The stream holds what is in the group and nothing else, so whatever is
-- before the first entry of the group goes; that is all of them where those are settled first that were leased first. To delete one by one
-- means to look for each among the hundred others of its block.
local function drop_entries(queue, entries)
  local stream = queue.at .. 's'
  if #entries > 2 then
    local first = redis.call('XPENDING', stream, 'redrive', '-', '+', '1')[1]
    local gone = first and redis.call('XTRIM', stream, 'MINID', first[1]) or redis.call('XTRIM', stream, 'MAXLEN', '0')
    if gone >= #entries then return end
  end
  redis.call('XDEL', stream, unpack(entries))
end

-- Lets go of the dedup key that a message holds while it is not done.
local function let_go(queue, id, m)
  if not keeps(m, 'u') then return end
  local key = redis.call('HGET', queue.at .. 'keys', id)
  local held = key and redis.call('HGET', queue.at .. 'dedup', key)
  if held == id .. ' -' then redis.call('HDEL', queue.at .. 'dedup', key) end
end

-- One message less, or more, of a class. A class that nobody is of is forgotten; its number is never used again.
local function of_class(queue, class, number)
  if redis.call('HINCRBY', queue.at .. 'class:count', class, number) > 0 then return end
  local pair = redis.call('HGET', queue.at .. 'class:pair', class)
  redis.call('HDEL', queue.at .. 'class:count', class)
  redis.call('HDEL', queue.at .. 'class:pair', class)
  if pair then redis.call('HDEL', queue.at .. 'class:number', pair) end
end

-- The number of a class; nothing where there is no room for another.
local function class_number(queue, pair, max)
  local number = redis.call('HGET', queue.at .. 'class:number', pair)
  if number then return number end
  if redis.call('HLEN', queue.at .. 'class:number') >= max then return nil end
  number = redis.call('HINCRBY', queue.key, 'classes', 1)
  redis.call('HSET', queue.at .. 'class:number', pair, number)
  redis.call('HSET', queue.at .. 'class:pair', number, pair)
  return tostring(number)
end

local function pair_of(queue, class)
  local known = queue.pairs[class]
  if not known then
    known = redis.call('HGET', queue.at .. 'class:pair', class) or ''
    queue.pairs[class] = known
  end
  return known
end

-- What is kept of messages under which letter.
local KEPT = { f = 'failures', c = 'points', n = 'notes', h = 'deaths', o = 'origins', w = 'keys', u = 'keys' }

local function forget(queue, id, m)
  for letter in string.gmatch(m.kept, '%a') do redis.call('HDEL', queue.at .. KEPT[letter], id) end
end

-- Takes a message away that waits nowhere and is leased by nobody any more.
local function vanish(queue, id, m)
  redis.call('HDEL', queue.at .. 'p', id)
  redis.call('HDEL', queue.at .. 'b', id)
  redis.call('ZREM', queue.at .. 'ids', id)
  forget(queue, id, m)
  of_class(queue, m.class, -1)
end

-- Takes a message from wherever it is, so that it can vanish.
local function leave(queue, id, m)
  if m.phase == 'd' or m.phase == 'r' then
    unwait(queue, id, m)
  elseif m.phase == 'l' then
    unlease(queue, id, m)
  elseif m.phase == 'x' then
    redis.call('ZREM', queue.at .. 'dead', id)
    redis.call('HDEL', queue.at .. 'leaving', id)
    local group = queue.at .. 'group:' .. m.print
    redis.call('ZREM', group, id)
    if redis.call('ZINCRBY', queue.at .. 'groups', -1, m.print) == '0' then redis.call('ZREM', queue.at .. 'groups', m.print) end
  else
    redis.call('ZREM', queue.at .. 'done', id)
  end
end

-- Writes a failed attempt down; twenty are kept.
local FAILURES = 20
local function failed(queue, id, m, record)
  local failures = keeps(m, 'f') and redis.call('HGET', queue.at .. 'failures', id)
  if failures then
    local _, breaks = string.gsub(failures, '\n', '')
    if breaks + 1 >= FAILURES then failures = string.sub(failures, string.find(failures, '\n', 1, true) + 1) end
    record = failures .. '\n' .. record
  end
  redis.call('HSET', queue.at .. 'failures', id, record)
  keep(m, 'f')
end

local function checkpoint(queue, id, m, bytes, before)
  redis.call('HSET', queue.at .. 'points', id, bytes)
  m.load = m.load - before + #bytes
  keep(m, 'c')
end

local function point_size(queue, id, m)
  if not keeps(m, 'c') then return 0 end
  return redis.call('HSTRLEN', queue.at .. 'points', id)
end

-- A message as the judge wants to see it: its line, the words of its class, its failures.
local function judged(queue, id)
  local line = redis.call('HGET', queue.at .. 'p', id)
  if not line then return { id, '' } end
  local m = parse(line)
  return { id, line, pair_of(queue, m.class), keeps(m, 'f') and redis.call('HGET', queue.at .. 'failures', id) or false }
end
