package microbench

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"sagabench/bench/internal/microbench/wire"
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
func baselineKeys(saga string) (global, branches, status string) {
	return saga + ":g", saga + ":b", saga + ":s"
}

func baselineKey(script string, pipeline int) Key {
	return Key{Case: "baseline " + script, Shape: Shape{Steps: baselineSteps, Sagas: 1, Pipeline: pipeline, Conns: connections}}
}

// baselineCalls returns the calls of a saga.
func baselineCalls(pipeline int) []callCount {
	return []callCount{{baselineKey("save", pipeline), 1}, {baselineKey("branch", pipeline), baselineSteps}, {baselineKey("finish", pipeline), 1}}
}

// baselineCases are the three scripts.
func baselineCases(pipeline int) (all []*callCase) {
	for _, c := range []struct {
		script  string
		prepare commands
		args    func(global, branches, status, index, saga string) []string
	}{
		{"save", nil, func(global, branches, status, index, saga string) []string {
			return append([]string{
				"4", global, branches, status, index,
				baselineTTLMS, baselineGlobal("submitted"), "submitted", strconv.FormatInt(dueAt(lease), 10), saga,
			}, baselineBranches()...)
		}},
		{"branch", prepareBaseline, func(_, branches, status, _, _ string) []string {
			return []string{"2", branches, status, "submitted", "1", baselineBranch(1, "succeed")}
		}},
		{"finish", prepareBaseline, func(global, _, status, index, saga string) []string {
			return []string{"3", global, status, index, "submitted", baselineTTLMS, baselineGlobal("succeed"), "succeed", saga}
		}},
	} {
		source, err := baselineFiles.ReadFile("baseline/" + c.script + ".lua")
		if err != nil {
			panic(err) // it is not embedded
		}
		all = append(all, &callCase{
			Key: baselineKey(c.script, pipeline), items: wire.AnyReply, prepare: c.prepare, clear: clearBaseline,
			args: func(args []string, call callKeys) []string {
				global, branches, status := baselineKeys(call.sagas[0])
				return append(append(args, "EVAL", string(source)), c.args(global, branches, status, call.index, call.sagas[0])...)
			},
		})
	}
	return all
}

// prepareBaseline creates sagas as save leaves them.
func prepareBaseline(ctx context.Context, pipe redis.Pipeliner, calls []callKeys) {
	for _, call := range calls {
		global, branches, status := baselineKeys(call.sagas[0])
		pipe.Set(ctx, global, baselineGlobal("submitted"), baselineTTL)
		pipe.Set(ctx, status, "submitted", baselineTTL)
		pipe.RPush(ctx, branches, baselineBranches())
		pipe.PExpire(ctx, branches, baselineTTL)
	}
	addDue(ctx, pipe, calls, dueLater)
}

func clearBaseline(ctx context.Context, pipe redis.Pipeliner, calls []callKeys) {
	for _, call := range calls {
		global, branches, status := baselineKeys(call.sagas[0])
		pipe.Del(ctx, global, branches, status)
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
