-- update: sets marks of unfinished sagas.
--
-- KEYS     per group: saga, saga, ...
-- ARGV     per group: number of sagas, a change (see change.lua) with the same
--          status and no note
-- Returns  pairs (position, 3 conflict, 4 not found or 5 no such branch) of
--          the sagas not changed
--
-- Atomic because nobody may claim the saga between the check and the write.

local err = checkArity('update', 1, 2, 0, 0)
if err then
  return err
end

local refused, last = {}, 0
for arg = 1, #ARGV, 2 do
  local change = parse(ARGV[arg + 1])
  local known, upto, place = change.known, change.upto, format('%d', 43 + change.first)
  local from = last + 1
  last = last + ARGV[arg]
  for k = from, last do
    local head = call('GETRANGE', KEYS[k], '26', upto)
    local marks, code = known[head]
    if not marks then
      code, marks = check(change, head)
      known[head] = marks
    end
    if marks then
      call('SETRANGE', KEYS[k], place, marks)
    else
      refused[#refused + 1] = k
      refused[#refused + 1] = code
    end
  end
end
return refused
