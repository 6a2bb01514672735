-- The end of a failed attempt: what nack, expire and bury have in common.
local EXPIRED_TTL = 'expired_ttl'

-- Carries out a sentence on a leased message, and answers what it came to.
local function ended(queue, id, m, said)
  unlease(queue, id, m)
  local consumer, leased_at, attempt, pair = m.consumer, m.leased_at, m.attempts, pair_of(queue, m.class)
  local due = not said.dies and math.min(queue.now + said.delay, 253402300799999)
  local reason = said.reason
  if due and m.expires and due >= m.expires then due, reason = nil, EXPIRED_TTL end
  failed(queue, id, m, table.concat({ attempt, leased_at, text(queue.now), said.cause, due and text(due - queue.now) or '-',
    due and said.rule or '-', consumer, said.error }, ' '))
  if due then
    promote(queue)
    m.phase, m.visible, m.place = 'r', due, next_place(queue)
    wait(queue, id, m)
    return { 'e', pair, attempt, leased_at, consumer, 'r', text(due) }
  end
  local moved = die(queue, id, m, reason, said.print, said.to, said.max_classes)
  return { 'e', pair, attempt, leased_at, consumer, 'd', reason, moved }
end
