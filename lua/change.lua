-- change: functions that every script starts with; not a script itself.
--
-- KEYS     none of its own
-- ARGV     a change is: expected owner (8 bytes; '........': any), epoch (8) and
--          status (1), new status (1), number of the first branch to mark (4,
--          decimal), marks from that branch on ('.' keeps a mark), and, to replace
--          the note, a zero byte and the note
-- Returns  nothing of its own
--
-- Atomic with the script that follows: nobody may claim or change the saga between
-- the check of its epoch, status and marks and the write.
--
-- Most sagas of a group have the same text from their owner to their marks. Scripts
-- compute the new text once per text, not once per saga: string functions in Lua
-- cost more than Redis' own commands.

-- checkArity returns an error if the numbers of KEYS and ARGV do not match, else
-- nil. Scripts call it before they write. In ARGV, from ARGV[arg] on, a group has
-- words arguments, of which the first is its number of sagas, and body arguments per
-- saga. In KEYS it has index keys and its sagas. It precedes the locals below:
-- capturing them would cost each call more than the counting.
local function checkArity(name, arg, words, body, index)
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
-- Numbers go to Redis as text, by format: Redis prints a number as a float, which
-- takes longer than reading the mark.
local call, sub, find, byte, format = redis.call, string.sub, string.find, string.byte, string.format

-- parse returns the parts of a change. known caches the new text by the old one.
local function parse(text)
  local note = find(text, '\0', 23, true)
  local first, marks = sub(text, 19, 22) + 0, sub(text, 23, (note or 0) - 1)
  local from = byte(text) == 46 and 9 or 1 -- 46 is '.': any owner
  return {
    from = from, -- where the expected text is in the saga's, from the owner on
    expected = sub(text, from, 17),
    status = sub(text, 18, 18),
    first = first,
    marks = marks,
    note = note and sub(text, note),
    -- the last byte to read: bodies may be large
    upto = format('%d', 42 + first + #marks),
    known = {},
  }
end

-- check compares a change with head, the text of a saga from its owner on. It returns
-- a refusal code, or nil and the marks to write.
local function check(change, head)
  local first, marks = 18 + change.first, change.marks
  if sub(head, change.from, 17) ~= change.expected then
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

-- setNote replaces the note, which is the last part of a saga's string.
local function setNote(saga, note)
  local value = call('GET', saga)
  call('SET', saga, sub(value, 1, (find(value, '\0', 1, true) or 0) - 1) .. note)
end

local function clock()
  local time = call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  return now, format('%d', now)
end
