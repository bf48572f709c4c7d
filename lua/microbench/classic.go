package microbench

import (
	"embed"
	"encoding/json"
	"fmt"
)

// The classic pattern is how sagas have been kept in Redis before: JSON records
// under three keys and a due index, changed by scripts whose text is sent with
// every call, one call to a round trip. A saga of two steps takes four calls:
// save, two branches, finish. It is here to be compared with on the same server
// in the same minute.

//go:embed classic/*.lua
var classicFiles embed.FS

const (
	classicSteps = 2           // of its sagas
	classicTTL   = "604800000" // ms: a week, from the beginning on
)

// classicTimes is how often a saga takes each of classicProbes.
var classicTimes = []float64{1, classicSteps, 1}

func classicScript(name string) string {
	text, err := classicFiles.ReadFile("classic/" + name + ".lua")
	if err != nil {
		panic(err) // it is not embedded
	}
	return string(text)
}

type classicKeys struct{ global, branches, status string }

func classicKeysOf(saga string) classicKeys {
	return classicKeys{saga + ":g", saga + ":b", saga + ":s"}
}

// classicProbes are the three scripts.
func classicProbes() []probe {
	eval := func(name string, words func(words []string, script string, k classicKeys, index, saga string) []string) probe {
		script := classicScript(name)
		return probe{
			Key: Key{Probe: "classic " + name, Shape: Shape{Steps: classicSteps}},
			words: func(all []string, call group) []string {
				saga := call.sagas[0]
				return words(append(all, "EVAL"), script, classicKeysOf(saga), call.index, saga)
			},
			prepare: classicPrepare,
			clear:   classicClear,
		}
	}
	save := eval("save", func(words []string, script string, k classicKeys, index, saga string) []string {
		words = append(words, script, "4", k.global, k.branches, k.status, index,
			classicTTL, classicGlobal("submitted"), "submitted", due(lease), saga)
		for i := range 2 * classicSteps {
			words = append(words, classicRecord(i, "prepared"))
		}
		return words
	})
	save.prepare = nil
	return []probe{
		save,
		eval("branch", func(words []string, script string, k classicKeys, _, _ string) []string {
			return append(words, script, "2", k.branches, k.status, "submitted", "1", classicRecord(1, "succeed"))
		}),
		eval("finish", func(words []string, script string, k classicKeys, index, saga string) []string {
			return append(words, script, "3", k.global, k.status, index,
				"submitted", classicTTL, classicGlobal("succeed"), "succeed", saga)
		}),
	}
}

// classicPrepare puts sagas there as save leaves them.
func classicPrepare(c *calls, plan []group) {
	for _, call := range plan {
		for _, saga := range call.sagas {
			k := classicKeysOf(saga)
			c.add("SET", k.global, classicGlobal("submitted"), "PX", classicTTL)
			c.add("SET", k.status, "submitted", "PX", classicTTL)
			words := []string{"RPUSH", k.branches}
			for i := range 2 * classicSteps {
				words = append(words, classicRecord(i, "prepared"))
			}
			c.add(words...)
			c.add("PEXPIRE", k.branches, classicTTL)
		}
	}
	addAll(c, plan, dueLater)
}

func classicClear(c *calls, plan []group) {
	for _, call := range plan {
		for _, saga := range call.sagas {
			k := classicKeysOf(saga)
			c.add("DEL", k.global, k.branches, k.status)
		}
	}
	removeAll(c, plan)
}

// classicGlobal is the record of a saga, classicRecord that of a branch.
func classicGlobal(status string) string {
	type step struct {
		Action     string `json:"action"`
		Compensate string `json:"compensate"`
	}
	return text(struct {
		GID              string   `json:"gid"`
		Kind             string   `json:"trans_type"`
		Steps            []step   `json:"steps"`
		Payloads         []string `json:"payloads"`
		Status           string   `json:"status"`
		Protocol         string   `json:"protocol"`
		Created          string   `json:"create_time"`
		Updated          string   `json:"update_time"`
		NextCronInterval int      `json:"next_cron_interval"`
		NextCronTime     string   `json:"next_cron_time"`
		Owner            string   `json:"owner"`
	}{
		gid(0), "saga", make([]step, classicSteps), make([]string, classicSteps), status, "http",
		classicTime, classicTime, 10, classicTime, "rsSTUuTsMFSGWfSWQLXdSM",
	})
}

func classicRecord(i int, status string) string {
	return text(struct {
		GID     string `json:"gid"`
		Payload string `json:"bin_data"`
		Branch  string `json:"branch_id"`
		Op      string `json:"op"`
		Status  string `json:"status"`
		Created string `json:"create_time"`
		Updated string `json:"update_time"`
	}{gid(0), "", fmt.Sprintf("%02d", i/2+1), []string{"compensate", "action"}[i%2], status, classicTime, classicTime})
}

const classicTime = "2026-01-15T10:20:30.123456789+00:00"

func text(record any) string {
	b, err := json.Marshal(record)
	if err != nil {
		panic(fmt.Sprintf("microbench: strings and numbers: %v", err))
	}
	return string(b)
}
