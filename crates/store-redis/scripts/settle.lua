-- How a batch of settlements begins: the queues, the messages that are under the leases that are meant, and, where it is all or
-- nothing, whether all of them are.
--
-- ARGV: time, all or nothing (2 where it cannot be all any more), how many words an item has, queues; of each queue its stamp and one word of the verb; then the
-- items, each beginning with its queue, the message and the lease, which is empty for whichever is current.
local all, words, number = ARGV[2] ~= '0', tonumber(ARGV[3]), tonumber(ARGV[4])
local first = 4 + 2 * number
local items = (#ARGV - first) / words

-- The word at that place of an item.
local function word(i, place)
  return ARGV[first + words * (i - 1) + place]
end

local queues, named = {}, {}
for n = 1, number do
  local queue = open(n)
  if not queue then return { 'gone', n } end
  -- Of a queue that the dead go to, the stamp is of no interest.
  local stamp = ARGV[3 + 2 * n]
  if stamp ~= '*' and stamp ~= queue.stamp then return { 'stale', n } end
  queue.word = ARGV[4 + 2 * n]
  queues[n], named[text(n)] = queue, queue
end

-- The queue of each item, and the items of each queue.
local whose = {}
for _, queue in ipairs(queues) do queue.items, queue.asked = {}, {} end
for i = 1, items do
  local at = first + words * (i - 1)
  local queue = named[ARGV[at + 1]]
  local own = queue.items
  local n = #own + 1
  whose[i], own[n], queue.asked[n] = queue, i, ARGV[at + 2]
end

local function queue_of(i)
  return whose[i]
end

-- The lines of all messages, in one look at each queue.
local lines = {}
for _, queue in ipairs(queues) do
  if #queue.items > 0 then
    local found = redis.call('HMGET', queue.at .. 'p', unpack(queue.asked))
    for k, i in ipairs(queue.items) do lines[i] = found[k] end
  end
end

-- The message of an item under the lease that is meant; otherwise how the item is refused: `n`ot found, or the `l`ease is lost.
local function held(i, read)
  local queue, id, lease = queue_of(i), word(i, 2), word(i, 3)
  local line = lines[i]
  -- An earlier item of this batch was about the same message.
  if queue.touched[id] then line = redis.call('HGET', queue.at .. 'p', id) end
  local m = line and (read and read(line) or parse(line))
  -- What is on its way to another node is as good as there.
  if not m or m.phase == 'k' or string.find(m.phase, '^%u') then return nil, 'n' end
  if m.phase ~= 'l' or (lease ~= '' and lease ~= m.lease) then return nil, 'l' end
  if lease ~= '' and string.sub(lease, 1, 4) < queue.fence then return nil, 'l' end
  return m
end

-- What a batch answers that is all or nothing and cannot be all. `after` says how an item is refused whose message an earlier one
-- has settled.
local function refusals(after)
  if not all then return nil end
  local answers, refused, settled = {}, ARGV[2] == '2', {}
  for i = 1, items do
    local message = queue_of(i).at .. word(i, 2)
    local m, why = held(i)
    -- Also one under a lease that was stale before: what it would find is what the earlier one leaves.
    if settled[message] then m, why = nil, settled[message] end
    if m and after then settled[message] = after(i, m) end
    answers[i] = { m and 'a' or why }
    refused = refused or not m
  end
  return refused and answers or nil
end

local function now_of()
  return queues[1] and queues[1].now or clock
end
