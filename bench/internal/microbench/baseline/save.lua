-- save: a new saga, its branches, its status and when it is due.
--
-- KEYS     global record, list of branch records, status, due index
-- ARGV     ms to live, global record, status, when it is due, gid, branch record, ...
-- Returns  DUPLICATE where there is such a saga, else OK
--
-- Atomic because the four keys are one saga.

if redis.call('EXISTS', KEYS[1]) == 1 then
  return 'DUPLICATE'
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1])
redis.call('SET', KEYS[3], ARGV[3], 'PX', ARGV[1])
redis.call('ZADD', KEYS[4], ARGV[4], ARGV[5])
for i = 6, #ARGV do
  redis.call('RPUSH', KEYS[2], ARGV[i])
end
redis.call('PEXPIRE', KEYS[2], ARGV[1])
return 'OK'
