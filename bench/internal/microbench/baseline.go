package microbench

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// The baseline is an older way to keep sagas in Redis: JSON records under three keys
// and a due index, changed by scripts whose text is sent with every call, one call per
// round trip. A saga of two steps takes four calls: save, two of branch, finish.

//go:embed baseline/*.lua
var baselineFiles embed.FS

const (
	baselineSteps = 2 // of its sagas
	baselineTTL   = 7 * 24 * time.Hour
	baselineTime  = "2026-01-15T10:20:30.123456789+00:00"
)

var baselineTTLMS = strconv.FormatInt(baselineTTL.Milliseconds(), 10)

// baselineKeys are the keys of a saga.
type baselineKeys struct{ global, branches, status string }

func baselineKeysOf(saga string) baselineKeys {
	return baselineKeys{saga + ":g", saga + ":b", saga + ":s"}
}

func baselineKey(script string) Key {
	return Key{Case: "baseline " + script, Shape: Shape{Steps: baselineSteps}}
}

// baselineCalls returns the calls of a saga.
func baselineCalls(pipeline int) []callCount {
	calls := []callCount{{baselineKey("save"), 1}, {baselineKey("branch"), baselineSteps}, {baselineKey("finish"), 1}}
	for i := range calls {
		calls[i].key.Sagas, calls[i].key.Pipeline, calls[i].key.Conns = 1, pipeline, connections
	}
	return calls
}

// baselineCases are the three scripts.
func baselineCases() []*callCase {
	newCase := func(name string, prepare commands, args func(script []string, k baselineKeys, index, saga string) []string) *callCase {
		script, err := baselineFiles.ReadFile("baseline/" + name + ".lua")
		if err != nil {
			panic(err) // it is not embedded
		}
		return &callCase{
			Key: baselineKey(name), items: anyReply, prepare: prepare, clear: clearBaseline,
			args: func(all []string, call callKeys) []string {
				saga := call.sagas[0]
				return args(append(all, "EVAL", string(script)), baselineKeysOf(saga), call.index, saga)
			},
		}
	}
	return []*callCase{
		newCase("save", nil, func(script []string, k baselineKeys, index, saga string) []string {
			return append(append(script, "4", k.global, k.branches, k.status, index,
				baselineTTLMS, baselineGlobal("submitted"), "submitted", strconv.FormatInt(dueAt(lease), 10), saga), baselineBranches()...)
		}),
		newCase("branch", prepareBaseline, func(script []string, k baselineKeys, _, _ string) []string {
			return append(script, "2", k.branches, k.status, "submitted", "1", baselineBranch(1, "succeed"))
		}),
		newCase("finish", prepareBaseline, func(script []string, k baselineKeys, index, saga string) []string {
			return append(script, "3", k.global, k.status, index,
				"submitted", baselineTTLMS, baselineGlobal("succeed"), "succeed", saga)
		}),
	}
}

// prepareBaseline creates sagas as save leaves them.
func prepareBaseline(ctx context.Context, pipe redis.Pipeliner, calls []callKeys) {
	for _, call := range calls {
		for _, saga := range call.sagas {
			k := baselineKeysOf(saga)
			pipe.Set(ctx, k.global, baselineGlobal("submitted"), baselineTTL)
			pipe.Set(ctx, k.status, "submitted", baselineTTL)
			pipe.RPush(ctx, k.branches, baselineBranches())
			pipe.PExpire(ctx, k.branches, baselineTTL)
		}
	}
	addDue(ctx, pipe, calls, dueLater)
}

func clearBaseline(ctx context.Context, pipe redis.Pipeliner, calls []callKeys) {
	for _, call := range calls {
		for _, saga := range call.sagas {
			k := baselineKeysOf(saga)
			pipe.Del(ctx, k.global, k.branches, k.status)
		}
	}
	removeDue(ctx, pipe, calls)
}

// baselineGlobal is the record of a saga.
func baselineGlobal(status string) string {
	return fmt.Sprintf(`{"gid":"%s","trans_type":"saga",`+
		`"steps":[{"action":"","compensate":""},{"action":"","compensate":""}],"payloads":["",""],"status":"%s","protocol":"http",`+
		`"create_time":"%[3]s","update_time":"%[3]s","next_cron_interval":10,"next_cron_time":"%[3]s","owner":"rsSTUuTsMFSGWfSWQLXdSM"}`,
		gid(0), status, baselineTime)
}

// baselineBranch is the record of branch i, of two per step.
func baselineBranch(i int, status string) string {
	return fmt.Sprintf(`{"gid":"%s","bin_data":"","branch_id":"%02d","op":"%s","status":"%s","create_time":"%[5]s","update_time":"%[5]s"}`,
		gid(0), i/2+1, []string{"compensate", "action"}[i%2], status, baselineTime)
}

// baselineBranches are the records of all branches of a new saga.
func baselineBranches() (all []string) {
	for i := range 2 * baselineSteps {
		all = append(all, baselineBranch(i, "prepared"))
	}
	return all
}
