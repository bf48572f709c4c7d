-- change: what update, complete and reschedule begin with; not a script itself.
--
-- KEYS     none of its own
-- ARGV     a change is: expected epoch (8 bytes) and status (1), new status (1),
--          number of the first branch it marks (4, decimal), marks from there
--          on ('.' leaves one as it is), and, if a note is to be kept, a zero
--          byte and the note
-- Returns  see below
--
-- Atomic with what follows it, for between looking at epoch, status and marks
-- and writing them nobody may claim the saga or decide otherwise.
--
-- The sagas of a group mostly read alike from their owner to the marks in
-- question. What a change makes of such a text is found out once per text, not
-- once per saga: handling strings in Lua costs more than Redis' own commands.

-- misfit is the error to answer, before anything is written, when the numbers of
-- KEYS and ARGV do not fit together, or nil. From ARGV[arg] on, a group is the
-- number of its sagas and what is to be done, words in all, then body words per
-- saga; in KEYS it is index keys and its sagas. It stands before the locals below:
-- capturing them would cost each call more than the counting.
local function misfit(name, arg, words, body, index)
  local ARGV, keys = ARGV, 0
  local given = #ARGV
  repeat
    local n = tonumber(ARGV[arg])
    if not n or n < 1 then
      return redis.error_reply('ERR ' .. name .. ': ARGV[' .. arg .. ']: want a number of sagas')
    end
    keys = keys + index + n
    arg = arg + words + body * n
  until arg > given
  if arg ~= given + 1 then
    return redis.error_reply('ERR ' .. name .. ': ' .. given .. ' in ARGV, want ' .. arg - 1)
  end
  if keys ~= #KEYS then
    return redis.error_reply('ERR ' .. name .. ': ' .. #KEYS .. ' in KEYS, want ' .. keys)
  end
end

local KEYS, ARGV = KEYS, ARGV -- a local is found faster than a global
-- Numbers are given to Redis as text, by format: it would print each as a float, which
-- takes longer than reading the mark.
local call, sub, find, byte, format = redis.call, string.sub, string.find, string.byte, string.format

-- read takes a change text apart; known is for what it makes of the heads it meets.
local function read(text)
  local note = find(text, '\0', 15, true)
  local first, marks = sub(text, 11, 14) + 0, sub(text, 15, (note or 0) - 1)
  return {
    expected = sub(text, 1, 9),
    status = sub(text, 10, 10),
    first = first,
    marks = marks,
    note = note and sub(text, note),
    -- the last byte to be looked at: bodies may be large
    upto = format('%d', 42 + first + #marks),
    known = {},
  }
end

-- judge says what a change makes of a saga that reads head from its owner on:
-- a refusal code, or nil and the marks to write.
local function judge(change, head)
  local first, marks = 18 + change.first, change.marks
  if sub(head, 9, 17) ~= change.expected then
    return head == '' and 4 or 3
  end
  if #head < first + #marks - 1 or find(head, ' ', 18, true) then
    return 5
  end
  for b = 1, #marks do
    local mark, was = byte(marks, b), byte(head, first + b - 1)
    if mark ~= was and mark ~= 46 and was ~= 45 then -- 46 is '.', 45 is '-'
      return 3
    end
  end
  if find(marks, '.', 1, true) then
    marks = string.gsub(marks, '()%.', function(b)
      return sub(head, first + b - 1, first + b - 1)
    end)
  end
  return nil, marks
end

-- annotate gives a saga another note, which is the last part of its string.
local function annotate(saga, note)
  local value = call('GET', saga)
  call('SET', saga, sub(value, 1, (find(value, '\0', 1, true) or 0) - 1) .. note)
end

local function clock()
  local time = call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  return now, format('%d', now)
end
