package redisstore

import (
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/lua"
	"sagabench/store"
)

// Replies that no script gives, as of a proxy or of a server that is none.
var malformedReplies = map[string]any{
	"nil":                   nil,
	"not a list":            "OK",
	"a nil position":        []any{nil, int64(1)},
	"a position of a text":  []any{"one", int64(1)},
	"a position that is 0":  []any{int64(0), int64(1)},
	"a position too high":   []any{int64(3), int64(1)},
	"a nil in a later pair": []any{int64(1), int64(1), nil, nil},
	"half a pair":           []any{int64(1)},
}

func TestApply_AMalformedReply_IsAnError(t *testing.T) {
	t.Parallel()
	s := planner()
	for name, reply := range malformedReplies {
		t.Run(name, func(t *testing.T) {
			call := &scriptCall{script: &lua.Update, changes: []int{0, 1}, cmd: redis.NewCmdResult(reply, nil)}
			errs := make([]error, 2)
			s.setErrors(t.Context(), call, errs)
			for _, err := range errs {
				require.ErrorContains(t, err, "update")
			}
		})
	}
}

func TestClaimed_AMalformedReply_IsAnError(t *testing.T) {
	t.Parallel()
	replies := map[string]any{"nothing": []any{}, "no time": []any{"soon"}, "a saga that is a number": []any{int64(1000), int64(1), int64(1)}}
	for name, reply := range malformedReplies {
		if pairs, ok := reply.([]any); ok {
			reply = slices.Concat([]any{int64(1000)}, pairs)
		}
		replies[name] = reply
	}
	for name, reply := range replies {
		t.Run(name, func(t *testing.T) {
			call := &scriptCall{script: &lua.Claim, keys: []string{"p:{0}", "p:{0}:a", "p:{0}:b"}, cmd: redis.NewCmdResult(reply, nil)}
			records, err := claimed(call)
			require.Error(t, err)
			require.NotErrorIs(t, err, store.ErrUnreadable)
			require.Empty(t, records)
		})
	}
}
