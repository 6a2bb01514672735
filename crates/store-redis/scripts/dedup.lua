-- Keys whose time is up make room.
local function forget_keys(queue)
  local gone = redis.call('ZRANGEBYSCORE', queue.at .. 'dedup:until', '-inf', queue.now_text, 'LIMIT', '0', '1000')
  if #gone == 0 then return end
  redis.call('HDEL', queue.at .. 'dedup', unpack(gone))
  redis.call('ZREM', queue.at .. 'dedup:until', unpack(gone))
end
