-- branch: another record for one branch, if the saga still has the status.
--
-- KEYS     list of branch records, status
-- ARGV     status expected, place in the list, branch record
-- Returns  CONFLICT where the saga has moved on, else OK
--
-- Atomic because the saga may be turned back between the look and the write.

if redis.call('GET', KEYS[2]) ~= ARGV[1] then
  return 'CONFLICT'
end
redis.call('LSET', KEYS[1], ARGV[2], ARGV[3])
return 'OK'
