-- reschedule: everything about an unfinished saga that is more than a mark:
-- when it is due, its change from submitted to aborting, a reason.
--
-- KEYS     per group: due index, saga, saga, ...
-- ARGV     per group: number of sagas; per saga two: ms until it is due (empty:
--          leave it); a change (see change.lua) to a status that is not final
-- Returns  pairs (position, 3 conflict, 4 not found or 5 no such branch) of
--          the sagas not changed
--
-- Atomic because the decision to abort, the mark that caused it and the time of
-- the next attempt are one event: half of it would be undone twice or never.

local now, stamp = clock()
local refused, position = {}, 0
local key, arg = 1, 1
while key <= #KEYS do
  local last, entries, n = key + ARGV[arg], {}, 0
  arg = arg + 1
  for k = key + 1, last do
    local saga, delay, change = KEYS[k], ARGV[arg], ARGV[arg + 1]
    local code, first, marks, head, reason = judge(saga, change)
    position = position + 1
    if code then
      refused[#refused + 1] = position
      refused[#refused + 1] = code
    else
      local status = sub(change, 10, 10)
      if status ~= sub(change, 9, 9) then
        call('SETRANGE', saga, '29', status .. stamp .. sub(head, 23, 22 + first) .. marks)
      elseif marks ~= '' then
        call('SETRANGE', saga, decimal[43 + first], marks)
      end
      if reason then
        explain(saga, reason)
      end
      if delay ~= '' then
        entries[n + 1], entries[n + 2] = decimal[now + delay], saga
        n = n + 2
      end
    end
    arg = arg + 2
  end
  if n > 0 then
    call('ZADD', KEYS[key], unpack(entries))
  end
  key = last + 1
end
return refused
