-- The lines in which ready messages stand, and the way into and out of them.
--
-- A line is a list for each lane, key, priority and class (`r:lane:priority:class:key`), in the order of places: an entry is
-- `place:id`. Which lines a key has, `priority:class` those of the highest priority first, is a text in `lines:lane`. A key that is named there
-- stands once in the list `ring:lane`, where the first is served next, or is `parked:lane` while it is paused. To be taken out of the middle of that
-- list would cost as much as it is long, so a key that loses its last line has an empty text, and goes when its turn comes; where every line begins, in `heads` (see `heads.lua`). The retry lane is known by attempts as well,
-- in `tries`, for whoever looks for a probe.
local function stands(m)
  return m.priority .. ':' .. m.class .. ':' .. m.key
end

-- The lines of a key with another one, and without one. A priority is one digit, so the order of texts is theirs.
local function with_line(lines, name)
  if not lines or lines == '' then return name end
  local names = { name }
  for other in string.gmatch(lines, '%S+') do
    if other == name then return lines end
    names[#names + 1] = other
  end
  table.sort(names, function(a, b) return a > b end)
  return table.concat(names, ' ')
end

local function without_line(lines, name)
  if lines == name then return nil end
  local names = {}
  for other in string.gmatch(lines, '%S+') do
    if other ~= name then names[#names + 1] = other end
  end
  return names[1] and table.concat(names, ' ')
end

-- Writes down that a line begins at that place.
local function begins(queue, lane, m, place)
  local lines = redis.call('HGET', queue.at .. 'lines:' .. lane, m.key)
  local more = with_line(lines, m.priority .. ':' .. m.class)
  if more ~= lines then redis.call('HSET', queue.at .. 'lines:' .. lane, m.key, more) end
  redis.call('ZADD', queue.at .. 'heads', place, lane .. ':' .. stands(m))
  if not lines then redis.call('RPUSH', queue.at .. 'ring:' .. lane, m.key) end
end

-- Looks where a line begins, after it was changed.
local function look(queue, lane, m)
  local line = lane .. ':' .. stands(m)
  local first = redis.call('LINDEX', queue.at .. 'r:' .. line, 0)
  if first then
    begins(queue, lane, m, tonumber(string.match(first, '^%d+')))
    return
  end
  redis.call('ZREM', queue.at .. 'heads', line)
  local lines = redis.call('HGET', queue.at .. 'lines:' .. lane, m.key)
  if not lines then return end
  lines = without_line(lines, m.priority .. ':' .. m.class) or ''
  redis.call('HSET', queue.at .. 'lines:' .. lane, m.key, lines)
  if lines == '' then redis.call('HDEL', queue.at .. 'turns:' .. lane, m.key) end
end

-- Puts a message into its line: at the end, where its place is the last, or to where it belongs.
local function stand(queue, id, m)
  local lane = lane_of(m)
  local line = queue.at .. 'r:' .. lane .. ':' .. stands(m)
  local entry = text(m.place) .. ':' .. id
  local function place_at(index)
    local at = redis.call('LINDEX', line, index)
    return at and tonumber(string.match(at, '^%d+'))
  end
  local last = place_at(-1)
  if not last or last < m.place then
    redis.call('RPUSH', line, entry)
    if not last then begins(queue, lane, m, m.place) end
  elseif m.place < place_at(0) then
    redis.call('LPUSH', line, entry)
    begins(queue, lane, m, m.place)
  else
    -- The first that stands behind it: somewhere between two that are twice as far from the front each, and then between the halves of that.
    local before, behind, last_index = 0, 1, redis.call('LLEN', line) - 1
    while behind < last_index and place_at(behind) <= m.place do before, behind = behind, 2 * behind end
    behind = math.min(behind, last_index)
    while behind - before > 1 do
      local middle = math.floor((before + behind) / 2)
      if place_at(middle) > m.place then behind = middle else before = middle end
    end
    redis.call('LINSERT', line, 'BEFORE', redis.call('LINDEX', line, behind), entry)
  end
  if lane == 'r' then redis.call('ZADD', queue.at .. 'tries', m.attempts, id) end
end

-- Takes a message out of its line, wherever it stands there.
local function step_out(queue, id, m)
  local lane = lane_of(m)
  local line = queue.at .. 'r:' .. lane .. ':' .. stands(m)
  local first, last = redis.call('LINDEX', line, 0), redis.call('LINDEX', line, -1)
  if first then
    local ahead = m.place - tonumber(string.match(first, '^%d+'))
    local behind = tonumber(string.match(last, '^%d+')) - m.place
    redis.call('LREM', line, behind < ahead and -1 or 1, text(m.place) .. ':' .. id)
    if ahead <= 0 then look(queue, lane, m) end
  end
  redis.call('ZREM', queue.at .. 'over', id)
  if lane == 'r' then redis.call('ZREM', queue.at .. 'tries', id) end
end

local function delayed(m, id)
  return string.format('%016.0f:%s', m.place, id)
end

-- Puts a waiting message to where it waits, and writes it down: the place is its own already.
local function wait(queue, id, m)
  if m.visible > queue.now then
    m.phase = 'd'
    redis.call('ZADD', queue.at .. 'delayed', m.visible, delayed(m, id))
  else
    m.phase = 'r'
    stand(queue, id, m)
  end
  if m.expires then redis.call('ZADD', queue.at .. 'ttl', m.expires, id) end
  redis.call('HSET', queue.at .. 'p', id, line_of(m))
end

-- Takes a waiting message from where it waits.
local function unwait(queue, id, m)
  if m.phase == 'd' then
    redis.call('ZREM', queue.at .. 'delayed', delayed(m, id))
  else
    step_out(queue, id, m)
  end
  if m.expires then redis.call('ZREM', queue.at .. 'ttl', id) end
end

-- Lets those stand in line whose time has come, in the order in which it came. Every script that lets another message stand in
-- line does this first, so that lines are in the order of time. A thousand at a time: what is beyond has to wait, and
-- whoever is ready meanwhile stands before it.
local PROMOTED = 1000
local function promote(queue)
  local due = redis.call('ZRANGEBYSCORE', queue.at .. 'delayed', '-inf', queue.now_text, 'LIMIT', '0', '1000')
  for _, member in ipairs(due) do
    local id = string.sub(member, 18)
    local line = redis.call('HGET', queue.at .. 'p', id)
    redis.call('ZREM', queue.at .. 'delayed', member)
    if line then
      local m = parse(line)
      m.phase, m.place = 'r', next_place(queue)
      stand(queue, id, m)
      redis.call('HSET', queue.at .. 'p', id, line_of(m))
    end
  end
  return #due == PROMOTED
end
