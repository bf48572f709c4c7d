-- Adds to a balance that may not fall below 0. It is the work in barrier.lua.
--
-- KEYS    1      the balance, an integer
-- ARGV    1      what to add
-- Returns nothing, or why it refuses.
--
-- Atomic: the balance would change between the check and the addition.
local balance = redis.call('GET', KEYS[1])
if not balance then
	return 'there is no balance'
end
if balance + ARGV[1] < 0 then
	return 'the balance is too low'
end
redis.call('INCRBY', KEYS[1], ARGV[1])
