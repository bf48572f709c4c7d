-- finish: the saga's end, if it still has the status.
--
-- KEYS     global record, status, due index
-- ARGV     status expected, ms to live, global record, status, gid
-- Returns  CONFLICT where the saga has moved on, else OK
--
-- Atomic because the saga may be turned back between the look and the write.

if redis.call('GET', KEYS[2]) ~= ARGV[1] then
  return 'CONFLICT'
end
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[2])
redis.call('SET', KEYS[2], ARGV[4], 'PX', ARGV[2])
redis.call('ZREM', KEYS[3], ARGV[5])
return 'OK'
