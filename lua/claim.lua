-- claim: takes over those of the given sagas that are still due: raises their
-- epoch, names the owner, makes them due again after the lease.
--
-- KEYS     due index, saga, saga, ...
-- ARGV     owner (8 bytes), ms for which to leave alone what cannot be read,
--          lease in ms
-- Returns  ms since 1970 when they are due again; then pairs (position, the
--          saga's string as it now stands) of the sagas claimed, and pairs
--          (position, nil) of those that cannot be read; the others were claimed
--          or ended in the meantime
--
-- Atomic because the epoch is the fence: two claimers that read the same epoch
-- before one of them raised it would both believe that they own the saga.

if #KEYS < 2 or #ARGV ~= 3 then
  return redis.error_reply('ERR claim: ' .. #KEYS .. ' in KEYS and ' .. #ARGV .. ' in ARGV, want 2 or more and 3')
end

local now = clock()
local due = now + ARGV[3]
local claimed, again, aside = { due }, format('%d', due), format('%d', now + ARGV[2])
-- A saga up to its marks: an error in the middle would take with it what was
-- claimed before.
local readable = '^' .. string.rep('%d', 26) .. string.rep('.', 8) .. string.rep('%x', 8) .. '[saSF][yn%-]+ '
for i = 2, #KEYS do
  local saga = KEYS[i]
  local score = call('ZSCORE', KEYS[1], saga)
  if score and score + 0 <= now then
    -- Bodies may be large: a body is read for the answer only.
    local head = redis.pcall('GETRANGE', saga, '0', '2043')
    if type(head) ~= 'string' or head ~= '' and not find(head, readable) then
      call('ZADD', KEYS[1], aside, saga)
      claimed[#claimed + 1] = i - 1
      claimed[#claimed + 1] = false
    elseif find('SF', sub(head, 43, 43), 1, true) then -- also if it is empty
      call('ZREM', KEYS[1], saga) -- removed by hand, or ended: nothing is left to recover
    else
      local held = ARGV[1] .. format('%08x', tonumber(sub(head, 35, 42), 16) + 1)
      call('SETRANGE', saga, '26', held)
      call('ZADD', KEYS[1], again, saga)
      claimed[#claimed + 1] = i - 1
      claimed[#claimed + 1] = call('GET', saga)
    end
  end
end
return claimed
