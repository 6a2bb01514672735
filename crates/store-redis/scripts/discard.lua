-- discard: any but leased → gone; by force leased ones too. The caller has seen which.
return each(function(id, m)
  leave(queue, id, m)
  let_go(queue, id, m)
  vanish(queue, id, m)
  count(queue, 'discard', 1)
end)
