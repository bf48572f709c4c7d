-- change: what update, complete and reschedule begin with; not a script itself.
--
-- KEYS     none of its own
-- ARGV     a change is: expected epoch (8 bytes) and status (1), new status (1),
--          number of the first branch it marks (4, decimal), marks from there
--          on ('.' leaves one as it is), and, if a reason is to be kept, a zero
--          byte and the reason
-- Returns  judge: a refusal code; or nil, the number of the first branch, the
--          marks to write, the saga from its epoch on, and the reason or nil
--
-- Atomic with what follows it, for between looking at epoch, status and marks
-- and writing them nobody may claim the saga or decide otherwise.

local call, sub, find, byte = redis.call, string.sub, string.find, string.byte

-- Numbers as text, each formatted once a call: Redis would print every number
-- it is given as a float, which takes longer than reading the mark.
local decimal = setmetatable({}, {
  __index = function(known, n)
    known[n] = string.format('%d', n)
    return known[n]
  end,
})

local function judge(saga, change)
  local reason = find(change, '\0', 15, true)
  local marks = sub(change, 15, (reason or 0) - 1)
  local first = sub(change, 11, 14) + 0
  -- as far as the last mark to be set, and no further: bodies may be large
  local head = call('GETRANGE', saga, '21', decimal[42 + first + #marks])
  if sub(head, 1, 9) ~= sub(change, 1, 9) then
    return head == '' and 4 or 3
  end
  if #head < 22 + first + #marks or find(head, ' ', 23, true) then
    return 5
  end
  for b = 1, #marks do
    local mark, was = byte(marks, b), byte(head, 22 + first + b)
    if mark ~= was and mark ~= 46 and was ~= 45 then -- 46 is '.', 45 is '-'
      return 3
    end
  end
  if find(marks, '.', 1, true) then
    marks = string.gsub(marks, '()%.', function(b)
      return sub(head, 22 + first + b, 22 + first + b)
    end)
  end
  return nil, first, marks, head, reason and sub(change, reason)
end

local function explain(saga, reason)
  local value = call('GET', saga)
  call('SET', saga, sub(value, 1, (find(value, '\0', 1, true) or 0) - 1) .. reason)
end

local function clock()
  local time = call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  return now, decimal[now]
end
