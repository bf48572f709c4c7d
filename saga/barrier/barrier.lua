-- Does the work of one call of a branch, unless there is nothing to do. The
-- function work(KEYS, ARGV) stands before this text.
--
-- KEYS    1      the mark of this call
--         2      the mark of the call that this one undoes; the same as 1: none
--         3...   the keys of work
-- ARGV    1      seconds after which the marks expire
--         2...   the arguments of work
-- Returns {} when there is nothing left to do, {reason} when work refuses, and
--         then nothing was written. An error of work is raised again.
--
-- Atomic: two calls at once would both find no mark, and both do the work.
local own, undone, seconds = KEYS[1], KEYS[2], ARGV[1]

if redis.call('EXISTS', own) == 1 then
	return {}
end
local neverDone = undone ~= own and redis.call('EXISTS', undone) == 0

-- First of all: a full server refuses a script's first write, and no later one.
redis.call('SET', own, 'op', 'EX', seconds)
if neverDone then
	redis.call('SET', undone, 'rollback', 'EX', seconds)
	return {}
end

local ok, refusal = pcall(work, {unpack(KEYS, 3)}, {unpack(ARGV, 2)})
if ok and not refusal then
	return {}
end
redis.call('DEL', own)
if not ok then
	error(refusal, 0)
end
return {tostring(refusal)}
