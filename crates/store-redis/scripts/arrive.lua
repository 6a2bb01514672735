-- A message arrives from another node. To bring it twice changes nothing, however much happened to it in between: what was said of a way
-- is said again. Also where it was refused, because the message is back where it was then.
--
-- ARGV: time, id, the id of the queue it came from, most classes, the number of its way, its line, its class, the last lease of that queue, the name of that
-- queue, its content, and what is kept of it under which letter.
local queue = open(1)
if not queue then return { 'gone' } end
local id = ARGV[2]
local token = ARGV[3] .. ':' .. ARGV[5] .. ':' .. id
local said = redis.call('ZMSCORE', queue.at .. 'arrived', token, token .. ':d', token .. ':c')
if said[1] then return { 'e' } end
if said[2] then return { 'd' } end
if said[3] then return { 'c' } end
local function refuse(why)
  redis.call('ZADD', queue.at .. 'arrived', queue.now, token .. ':' .. why)
  close(queue)
  return { why }
end
if redis.call('HEXISTS', queue.at .. 'p', id) == 1 then return refuse('d') end
local class = class_number(queue, ARGV[7], tonumber(ARGV[4]))
if not class then return refuse('c') end
redis.call('ZADD', queue.at .. 'arrived', queue.now, token)
local m = parse(ARGV[6])
m.phase, m.class = string.lower(m.phase), class
drop(m, 'w')
drop(m, 'u')
for i = 11, #ARGV, 2 do redis.call('HSET', queue.at .. KEPT[ARGV[i]], id, ARGV[i + 1]) end
redis.call('HSET', queue.at .. 'origins', id, ARGV[9])
keep(m, 'o')
redis.call('HSET', queue.at .. 'b', id, ARGV[10])
redis.call('ZADD', queue.at .. 'ids', 0, id)
of_class(queue, class, 1)
count(queue, 'moved_in', 1)
queue.leases = math.max(queue.leases, tonumber(ARGV[8]))
arrive(queue, id, m)
close(queue)
return { 'e' }
