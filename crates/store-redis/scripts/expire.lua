-- expire: leased → delayed | ready | dead, for leases whose deadline has passed and that nobody has touched since the judge looked.
--
-- ARGV: time, stamp, most classes, whether there is a queue that the dead go to (`@` and its name where it is at another node); of each message its id, the line that was judged,
-- the sentence, delay or reason, rule, fingerprint, error.
local queue = open(1)
if not queue then return { 'gone' } end
if queue.stamp ~= ARGV[2] then return { 'stale' } end
local to
if ARGV[4] == '1' then
  to = open(2)
  if not to then return { 'gone', 2 } end
end
queue.relay = string.match(ARGV[4], '^@(.+)$')

local answers = {}
for i = 5, #ARGV, 7 do
  local id = ARGV[i]
  local line = redis.call('HGET', queue.at .. 'p', id)
  local m = line == ARGV[i + 1] and parse(line)
  if m and m.phase == 'l' and m.deadline <= queue.now then
    answers[#answers + 1] = ended(queue, id, m, {
      dies = ARGV[i + 2] == 'd', delay = tonumber(ARGV[i + 3]), reason = ARGV[i + 3], rule = ARGV[i + 4], print = ARGV[i + 5],
      error = ARGV[i + 6], cause = 'e', to = to, max_classes = tonumber(ARGV[3]),
    })
    count(queue, 'expire', 1)
  else
    answers[#answers + 1] = { 'l' }
  end
end
if to then close(to) end
close(queue)
return { 'ok', queue.now, answers }
