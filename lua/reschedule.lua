-- reschedule: everything about an unfinished saga that is more than a mark:
-- when it is due, its change from submitted to aborting, a reason.
--
-- KEYS     per group: due index, saga, saga, ...
-- ARGV     per group: number of sagas, ms until they are due (empty: leave it),
--          a change (see change.lua) to a status that is not final
-- Returns  pairs (position, 3 conflict, 4 not found or 5 no such branch) of
--          the sagas not changed
--
-- Atomic because the decision to abort, the mark that caused it and the time of
-- the next attempt are one event: half of it would be undone twice or never.

local now, stamp = clock()
local refused, position, key = {}, 0, 1
for arg = 1, #ARGV, 3 do
  local index, last, delay = KEYS[key], key + ARGV[arg], ARGV[arg + 1]
  local change, entries, n = changes[ARGV[arg + 2]], {}, 0
  for k = key + 1, last do
    local saga = KEYS[k]
    position = position + 1
    local head = call('GETRANGE', saga, '26', change.upto)
    local code, marks = judge(change, head)
    if code then
      refused[#refused + 1] = position
      refused[#refused + 1] = code
    else
      if change.moves then
        call('SETRANGE', saga, '13', stamp .. sub(head, 1, 16) .. change.status .. sub(head, 18, 17 + change.first) .. marks)
      elseif marks ~= '' then
        call('SETRANGE', saga, decimal[43 + change.first], marks)
      end
      if change.reason then
        explain(saga, change.reason)
      end
      if delay ~= '' then
        entries[n + 1], entries[n + 2] = decimal[now + delay], saga
        n = n + 2
      end
    end
  end
  if n > 0 then
    call('ZADD', index, unpack(entries))
  end
  key = last + 1
end
return refused
