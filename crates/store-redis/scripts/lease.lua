-- lease: ready → leased. Who is served next, in the order of the design: lane, fairness, priority, order.

-- Keys whose pause is over are served again.
local function unpark(name)
  local parked = queue.at .. 'parked:' .. name
  for _, key in ipairs(redis.call('ZRANGEBYSCORE', parked, '-inf', queue.now_text, 'LIMIT', '0', '1000')) do
    redis.call('ZREM', parked, key)
    comes_back(queue, name, key)
  end
end

if probe then
  pick_probe()
else
  if key_pauses or redis.call('EXISTS', queue.at .. 'parked:f', queue.at .. 'parked:r') > 0 then
    unpark('f')
    unpark('r')
  end
  if not pick_simply() then pick_in_turns() end
end

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
      local who, gets, last = ARGV[asker + 1], math.min(wants, #picked - i + 1), reads[#reads]
      -- One consumer may ask several times.
      if last and last[1] == who then last[2] = last[2] + gets else reads[#reads + 1] = { who, gets } end
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
