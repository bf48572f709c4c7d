-- complete: ends sagas: status and last marks, out of the due index, and an
-- expiry where there was none.
--
-- KEYS     per group: due index, saga, saga, ...
-- ARGV     retention in ms (0: delete at once); then per group: number of
--          sagas; per saga: a change (see change.lua) to a final status
-- Returns  pairs (position, 3 conflict, 4 not found or 5 no such branch) of
--          the sagas not ended
--
-- Atomic because a saga is either unfinished, due and without expiry, or ended,
-- not due and with one; a crash in between would lose or leak it.

local _, stamp = clock()
local retention = ARGV[1]
local refused, position = {}, 0
local key, arg = 1, 2
while key <= #KEYS do
  local last, ended, n = key + ARGV[arg], {}, 0
  for k = key + 1, last do
    arg = arg + 1
    position = position + 1
    local saga = KEYS[k]
    local code, first, marks, head, reason = judge(saga, ARGV[arg])
    if code then
      refused[#refused + 1] = position
      refused[#refused + 1] = code
    else
      if retention == '0' then
        call('DEL', saga)
      else
        call('SETRANGE', saga, '29', sub(ARGV[arg], 10, 10) .. stamp .. sub(head, 23, 22 + first) .. marks)
        if reason then
          explain(saga, reason)
        end
        call('PEXPIRE', saga, retention)
      end
      n = n + 1
      ended[n] = saga
    end
  end
  if n > 0 then
    call('ZREM', KEYS[key], unpack(ended))
  end
  arg = arg + 1
  key = last + 1
end
return refused
