-- save: creates sagas and adds them to the due index.
--
-- KEYS     per group: due index, saga, saga, ...
-- ARGV     per group: number of sagas, ms until they are due; then per saga its
--          string from the owner on
-- Returns  pairs (position, 1 exists or 2 duplicate) of the sagas not saved
--
-- Atomic because a saga that is not in the due index is never recovered, and because
-- two clients that create one gid must see each other.

local err = checkArity('save', 1, 2, 1, 1)
if err then
  return err
end

local now, stamp = clock()
local times = stamp .. stamp

local function body(saga, from)
  local marks_end = find(saga, ' ', from, true) or from
  return sub(saga, marks_end + 1, (find(saga, '\0', marks_end, true) or 0) - 1)
end

local refused, position = {}, 0
local key, arg = 1, 1
while key <= #KEYS do
  local index, last = KEYS[key], key + ARGV[arg]
  local due, entries, n = format('%d', now + ARGV[arg + 1]), {}, 0
  arg = arg + 2
  for k = key + 1, last do
    local saga = KEYS[k]
    position = position + 1
    if call('SETNX', saga, times .. ARGV[arg]) == 1 then
      entries[n + 1], entries[n + 2] = due, saga
      n = n + 2
    else
      -- The key may hold no string: an error would end the call after a part of it.
      local existing = redis.pcall('GET', saga)
      refused[#refused + 1] = position
      refused[#refused + 1] = type(existing) == 'string' and body(existing, 44) == body(ARGV[arg], 18) and 2 or 1
    end
    arg = arg + 1
  end
  if n > 0 then
    call('ZADD', index, unpack(entries))
  end
  key = last + 1
end
return refused
