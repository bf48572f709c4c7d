-- claim: claims the given sagas that are still due: raises their epoch, sets the
-- owner, makes them due again after the lease.
--
-- KEYS     due index, saga, saga, ...
-- ARGV     owner (8 bytes), ms to skip sagas that cannot be read, lease in ms
-- Returns  ms since 1970 when the claimed sagas are due again; then pairs (position,
--          new string) of claimed sagas and (position, nil) of sagas that cannot be
--          read; other sagas were claimed or have ended meanwhile
--
-- Atomic because the epoch is the fence: two clients that read the same epoch would
-- both believe that they own the saga.

if #KEYS < 2 or #ARGV ~= 3 then
  return redis.error_reply('ERR claim: ' .. #KEYS .. ' in KEYS and ' .. #ARGV .. ' in ARGV, want 2 or more and 3')
end

local now = clock()
local due = now + ARGV[3]
local claimed, again, quarantine = { due }, format('%d', due), format('%d', now + ARGV[2])
-- A valid saga up to its marks. An error later would end the call after some claims.
local readable = '^' .. string.rep('%d', 26) .. string.rep('.', 8) .. string.rep('%x', 8) .. '[saSF][yn%-]+ '
for i = 2, #KEYS do
  local saga = KEYS[i]
  local score = call('ZSCORE', KEYS[1], saga)
  if score and score + 0 <= now then
    -- Bodies may be large: only the reply needs them.
    local head = redis.pcall('GETRANGE', saga, '0', '2043')
    if type(head) ~= 'string' or head ~= '' and not find(head, readable) then
      call('ZADD', KEYS[1], quarantine, saga)
      claimed[#claimed + 1] = i - 1
      claimed[#claimed + 1] = false
    elseif find('SF', sub(head, 43, 43), 1, true) then -- also if it is empty
      call('ZREM', KEYS[1], saga) -- deleted by hand, or ended
    else
      local ownership = ARGV[1] .. format('%08x', tonumber(sub(head, 35, 42), 16) + 1)
      call('SETRANGE', saga, '26', ownership)
      call('ZADD', KEYS[1], again, saga)
      claimed[#claimed + 1] = i - 1
      claimed[#claimed + 1] = call('GET', saga)
    end
  end
end
return claimed
