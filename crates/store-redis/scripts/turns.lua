-- Who is served next, where that is to be decided: by the lane, and in it by the turns of the keys, their priorities and the order of their messages.
--
-- All of it is made when it is called for: functions are made anew with every call of a script, and most calls do without these.
local function pick_in_turns()
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

  local lanes = { f = lane('f'), r = lane('r') }
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
