-- update: sets marks of unfinished sagas, and nothing else.
--
-- KEYS     saga, saga, ...
-- ARGV     per saga: a change (see change.lua) without another status or a reason
-- Returns  pairs (position, 3 conflict, 4 not found or 5 no such branch) of
--          the sagas not changed
--
-- Atomic because nobody may claim the saga between the look and the write.

local refused = {}
for i, saga in ipairs(KEYS) do
  local code, first, marks = judge(saga, ARGV[i])
  if code then
    refused[#refused + 1] = i
    refused[#refused + 1] = code
  else
    call('SETRANGE', saga, decimal[43 + first], marks)
  end
end
return refused
