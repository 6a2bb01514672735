-- ack: leased → gone | done. The word of a queue is whether it retains what is done.
--
-- What was acked is answered by its line alone, and its class in a list of its own: a table for each would cost more than the rest.
local refused = refusals(function() return 'n' end)
if refused then return { 'ok', now_of(), refused } end

-- What most lines have between their priority and their class: handed out once, without settings of their own. Found as it stands, which costs a
-- fraction of a pattern for the whole line.
local ONCE = ' 1 1 0 0 - - '
local find, match = string.find, string.match

-- The class and the entry of such a message under that lease, of which nothing else is kept. No other word of a leased one looks like a lease.
local function leased_once(line, lease)
  local before, at = find(line, ONCE, 1, true)
  local from = before and find(line, ' ' .. lease .. ' ', at, true)
  if not from or string.byte(line) ~= 108 then return nil end
  local class = match(line, '^(%d+) %d+ %d+ %- ', at + 1)
  return class, class and match(line, '^%d+ %d+ (%S+)', from + #lease + 2)
end

local answers, classes_of = {}, {}
for _, queue in ipairs(queues) do
  local retain = queue.word == '1'
  local entries, deadlines, ids, retries, classes, acked = {}, {}, {}, {}, {}, 0
  local touched, own, fence = queue.touched, queue.items, queue.fence
  local function gone(id, class)
    ids[#ids + 1] = id
    classes[class] = (classes[class] or 0) + 1
  end
  local function ends(id, lease, entry, class, line)
    touched[id] = true
    acked = acked + 1
    entries[acked], deadlines[acked] = entry, deadline_of(lease, id, entry)
    return line, queue.pairs[class] or pair_of(queue, class)
  end
  for at = 1, #own do
    local i, id = own[at], queue.asked[at]
    local line = lines[i]
    if touched[id] then
      -- What an earlier item acked is taken away once all are seen.
      answers[i], classes_of[i] = 'n', ''
    else
      local lease, class, entry = ARGV[first + words * (i - 1) + 3], nil, nil
      if line and not retain and lease >= fence then class, entry = leased_once(line, lease) end
      if entry then
        answers[i], classes_of[i] = ends(id, lease, entry, class, line)
        gone(id, class)
      else
        local m, why = held(i)
        if m then
          answers[i], classes_of[i] = ends(id, m.lease, m.entry, m.class, line)
          if lane_of(m) == 'r' then retries[#retries + 1] = id end
          let_go(queue, id, m)
          if retain then
            m.phase, m.done_at = 'k', text(queue.now)
            redis.call('HSET', queue.at .. 'p', id, line_of(m))
            redis.call('ZADD', queue.at .. 'done', queue.now, id)
            count(queue, 'retained', 1)
          else
            if m.kept ~= '-' then forget(queue, id, m) end
            gone(id, m.class)
          end
        else
          answers[i], classes_of[i] = why, ''
        end
      end
    end
  end
  if acked > 0 then
    redis.call('XACK', queue.at .. 's', 'redrive', unpack(entries))
    drop_entries(queue, entries)
    redis.call('ZREM', queue.at .. 'deadlines', unpack(deadlines))
    if #retries > 0 then redis.call('SREM', queue.at .. 'retries', unpack(retries)) end
    if #ids > 0 then
      redis.call('HDEL', queue.at .. 'p', unpack(ids))
      redis.call('HDEL', queue.at .. 'b', unpack(ids))
      redis.call('ZREM', queue.at .. 'ids', unpack(ids))
      for class, number in pairs(classes) do of_class(queue, class, -number) end
    end
    count(queue, 'ack', acked)
  end
  close(queue)
end
return { 'ok', now_of(), answers, classes_of }
