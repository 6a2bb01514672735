-- ack: leased → gone | done. The word of a queue is whether it retains what is done.
--
-- What was acked is answered by its line alone, and its class in a list of its own: a table for each would cost more than the rest.
local refused = refusals(function() return 'n' end)
if refused then return { 'ok', now_of(), refused } end

-- What an ack needs of a message that will be gone and of which nothing else is kept.
local HELD = '^l %d+ %d+ %d %S+ (%d+) %d+ %d+ (%d+) %S+ %S+ (%d+) %d+ %d+ %- %S+ (%S+) %S+ %S+ (%S+) %S+$'

local answers, classes_of = {}, {}
for _, queue in ipairs(queues) do
  local retain = queue.word == '1'
  local entries, deadlines, ids, retries, classes, acked = {}, {}, {}, {}, {}, 0
  local function gone(id, class)
    ids[#ids + 1] = id
    classes[class] = (classes[class] or 0) + 1
  end
  local function ends(id, lease, entry, class, line)
    queue.touched[id] = true
    acked = acked + 1
    entries[acked], deadlines[acked] = entry, lease .. ':' .. id
    return line, pair_of(queue, class)
  end
  for at, i in ipairs(queue.items) do
    local id, line = queue.asked[at], lines[i]
    if queue.touched[id] then
      -- What an earlier item acked is taken away once all are seen.
      answers[i], classes_of[i] = 'n', ''
    else
      local attempts, redrives, class, lease, entry
      if line and not retain then attempts, redrives, class, lease, entry = string.match(line, HELD) end
      if lease and lease == word(i, 3) and string.sub(lease, 1, 4) >= queue.fence then
        answers[i], classes_of[i] = ends(id, lease, entry, class, line)
        if attempts ~= '1' or redrives ~= '0' then retries[#retries + 1] = id end
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
    redis.call('XDEL', queue.at .. 's', unpack(entries))
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
