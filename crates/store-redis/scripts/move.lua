-- move: any but leased → another queue, in one step. The word of the verb: most classes.
local to = open(2)
if not to then return { 'gone', 2 } end
local max_classes = tonumber(ARGV[4])
local answer = each(function(id, m)
  local why = no_place(queue, to, id, m, max_classes)
  if why then return { why, id } end
  leave(queue, id, m)
  carry(queue, to, id, m, max_classes)
  arrive(to, id, m)
end)
close(to)
return answer
