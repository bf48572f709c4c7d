-- complete: ends sagas: sets status and last marks, removes them from the due index,
-- and sets their expiry.
--
-- KEYS     per group: due index, saga, saga, ...
-- ARGV     retention in ms (0: delete at once); then per group: number of
--          sagas, a change (see change.lua) to a final status
-- Returns  pairs (position, 3 conflict, 4 not found or 5 no such branch) of
--          the sagas not ended
--
-- Atomic because an unfinished saga is due and has no expiry, and a finished saga is
-- not due and has one. A crash in between would lose or leak the saga.

local err = checkArity('complete', 2, 2, 0, 1)
if err then
  return err
end

local now, stamp = clock()
local retention, expiry = ARGV[1], format('%d', now + ARGV[1])
local refused, position, key = {}, 0, 1
for arg = 2, #ARGV, 2 do
  local index, last = KEYS[key], key + ARGV[arg]
  local change = parse(ARGV[arg + 1])
  local known, upto, ended, n = change.known, change.upto, {}, 0
  for k = key + 1, last do
    local saga = KEYS[k]
    position = position + 1
    local head = call('GETRANGE', saga, '26', upto)
    local new, code, marks = known[head]
    if not new then
      code, marks = check(change, head)
      new = marks and stamp .. sub(head, 1, 16) .. change.status .. sub(head, 18, 17 + change.first) .. marks
      known[head] = new
    end
    if not new then
      refused[#refused + 1] = position
      refused[#refused + 1] = code
    else
      if retention == '0' then
        call('DEL', saga)
      else
        call('SETRANGE', saga, '13', new)
        if change.note then
          setNote(saga, change.note)
        end
        call('PEXPIREAT', saga, expiry)
      end
      n = n + 1
      ended[n] = saga
    end
  end
  if n > 0 then
    call('ZREM', index, unpack(ended))
  end
  key = last + 1
end
return refused
