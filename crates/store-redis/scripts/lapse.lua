-- lapse: ready | delayed → dead, for messages that nobody has touched since it was seen that they can never be handed out again.
--
-- ARGV: time, stamp, most classes, whether there is a queue that the dead go to (`@` and its name where it is at another node), what `capped` was when those that
-- are over a cap were looked for, or nothing, and how far that was (`tried.lua`); of each message its id, the line that was seen, the reason, the fingerprint.
local queue = open(1)
if not queue then return { 'gone' } end
if queue.stamp ~= ARGV[2] then return { 'stale' } end
local to
if ARGV[4] == '1' then
  to = open(2)
  if not to then return { 'gone', 2 } end
end
queue.relay = string.match(ARGV[4], '^@(.+)$')

local answers, touched = {}, false
for i = 7, #ARGV, 4 do
  local id = ARGV[i]
  local line = redis.call('HGET', queue.at .. 'p', id)
  local m = line and line == ARGV[i + 1] and parse(line)
  if m and (m.phase == 'd' or m.phase == 'r') then
    local pair, attempts = pair_of(queue, m.class), m.attempts
    unwait(queue, id, m)
    local moved = die(queue, id, m, ARGV[i + 2], ARGV[i + 3], to, tonumber(ARGV[3]))
    answers[#answers + 1] = { 'e', pair, attempts, moved }
    count(queue, 'lapse', 1)
  else
    touched = true
    answers[#answers + 1] = { 'l' }
  end
end
-- Who was touched since has another line by now, and is looked at once more.
if ARGV[6] ~= '' and not touched and redis.call('HGET', queue.key, 'capped') == ARGV[5] then
  redis.call('HSET', queue.key, 'capped:from', ARGV[5] .. ' ' .. ARGV[6])
end
if to then close(to) end
close(queue)
return { 'ok', queue.now, answers }
