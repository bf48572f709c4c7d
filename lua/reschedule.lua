-- reschedule: changes unfinished sagas in more than their marks: due time, status from
-- submitted to aborting, release, note.
--
-- KEYS     per group: due index, saga, saga, ...
-- ARGV     per group: number of sagas, ms until they are due (empty: keep), owner
--          (8 bytes, blanks to release; empty: keep), a change (see change.lua) to a
--          status that is not final
-- Returns  pairs (position, 3 conflict, 4 not found or 5 no such branch) of
--          the sagas not changed
--
-- Atomic because the decision to abort, the mark that caused it, the release and the
-- time of the next attempt are one event. After half of it, branches would be
-- compensated twice or never.

local err = checkArity('reschedule', 1, 4, 0, 1)
if err then
  return err
end

local now, stamp = clock()
local refused, position, key = {}, 0, 1
for arg = 1, #ARGV, 4 do
  local index, last, delay, owner = KEYS[key], key + ARGV[arg], ARGV[arg + 1], ARGV[arg + 2]
  local due = delay ~= '' and format('%d', now + delay)
  local change, entries, n = parse(ARGV[arg + 3]), {}, 0
  for k = key + 1, last do
    local saga = KEYS[k]
    position = position + 1
    local head = call('GETRANGE', saga, '26', change.upto)
    local code, marks = check(change, head)
    if code then
      refused[#refused + 1] = position
      refused[#refused + 1] = code
    else
      local ownership = owner == '' and sub(head, 1, 16) or owner .. sub(head, 9, 16)
      local new = ownership .. change.status .. sub(head, 18, 17 + change.first) .. marks
      if change.status ~= sub(change.expected, -1) then
        call('SETRANGE', saga, '13', stamp .. new)
      else
        call('SETRANGE', saga, '26', new)
      end
      if change.note then
        setNote(saga, change.note)
      end
      if due then
        entries[n + 1], entries[n + 2] = due, saga
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
