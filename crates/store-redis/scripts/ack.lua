-- ack: leased → gone | done. The word of a queue is whether it retains what is done.
local refused = refusals(function() return 'n' end)
if refused then return { 'ok', now_of(), refused } end

local answers = {}
for n, queue in ipairs(queues) do
  local retain = queue.word == '1'
  local entries, deadlines, ids, retries, acked = {}, {}, {}, {}, 0
  local classes = {}
  for i = 1, items do
    if tonumber(word(i, 1)) == n then
      local id = word(i, 2)
      local m, why
      -- What an earlier item acked is taken away once all are seen.
      if touched[queue.at .. id] then why = 'n' else m, why = held(i) end
      if m then
        touched[queue.at .. id] = true
        answers[i] = { 'e', pair_of(queue, m.class), m.attempts, m.leased_at, m.consumer }
        acked = acked + 1
        entries[acked], deadlines[acked] = m.entry, m.lease .. ':' .. id
        if lane_of(m) == 'r' then retries[#retries + 1] = id end
        let_go(queue, id, m)
        if retain then
          m.phase, m.done_at = 'k', text(queue.now)
          redis.call('HSET', queue.at .. 'p', id, line_of(m))
          redis.call('ZADD', queue.at .. 'done', queue.now, id)
          count(queue, 'retained', 1)
        else
          ids[#ids + 1] = id
          if m.kept ~= '-' then forget(queue, id, m) end
          classes[m.class] = (classes[m.class] or 0) + 1
        end
      else
        answers[i] = { why }
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
return { 'ok', now_of(), answers }
