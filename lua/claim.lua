-- claim: takes over those of the given sagas that are still due: raises their
-- epoch, names the owner, makes them due again after the lease.
--
-- KEYS     due index, saga, saga, ...
-- ARGV     owner (8 bytes), lease in ms
-- Returns  ms since 1970 when they are due again; then pairs (position, the
--          saga's string as it now stands) of the sagas claimed; the others
--          were claimed or ended in the meantime
--
-- Atomic because the epoch is the fence: two claimers that read the same epoch
-- before one of them raised it would both believe that they own the saga.

if #KEYS < 2 or #ARGV ~= 2 then
  return redis.error_reply('ERR claim: ' .. #KEYS .. ' in KEYS and ' .. #ARGV .. ' in ARGV, want 2 or more and 2')
end

local now = clock()
local due = now + ARGV[2]
local claimed, again = { due }, format('%d', due)
for i = 2, #KEYS do
  local saga = KEYS[i]
  local score = call('ZSCORE', KEYS[1], saga)
  if score and score + 0 <= now then
    local value = call('GET', saga)
    if not value or find('SF', sub(value, 43, 43), 1, true) then
      call('ZREM', KEYS[1], saga) -- removed by hand, or ended: nothing is left to recover
    else
      local held = ARGV[1] .. format('%08x', tonumber(sub(value, 35, 42), 16) + 1)
      call('SETRANGE', saga, '26', held)
      call('ZADD', KEYS[1], again, saga)
      claimed[#claimed + 1] = i - 1
      claimed[#claimed + 1] = sub(value, 1, 26) .. held .. sub(value, 43)
    end
  end
end
return claimed
