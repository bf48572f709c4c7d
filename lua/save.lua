-- save: puts new sagas into the store and makes them due.
--
-- KEYS     per group: due index, saga, saga, ...
-- ARGV     per group: number of sagas; per saga two: ms until it is due;
--          owner (8 bytes), marks, blank, body
-- Returns  pairs (position, 1 exists or 2 duplicate) of the sagas not saved
--
-- Atomic because a saga without its entry in the due index would never be
-- recovered, and because two creators of one gid must see each other.

local now, stamp = clock()

local function body(saga, from)
  local marks_end = find(saga, ' ', from, true)
  return sub(saga, marks_end + 1, (find(saga, '\0', marks_end, true) or 0) - 1)
end

local refused, position = {}, 0
local key, arg = 1, 1
while key <= #KEYS do
  local last, entries, n = key + ARGV[arg], {}, 0
  arg = arg + 1
  for k = key + 1, last do
    local saga, new = KEYS[k], ARGV[arg + 1]
    position = position + 1
    if call('SET', saga, stamp .. sub(new, 1, 8) .. '00000001s' .. stamp .. sub(new, 9), 'NX') then
      entries[n + 1], entries[n + 2] = decimal[now + ARGV[arg]], saga
      n = n + 2
    else
      refused[#refused + 1] = position
      refused[#refused + 1] = body(call('GET', saga), 44) == body(new, 9) and 2 or 1
    end
    arg = arg + 2
  end
  if n > 0 then
    call('ZADD', KEYS[key], unpack(entries))
  end
  key = last + 1
end
return refused
