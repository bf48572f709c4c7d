package faults

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"sagabench/store"
)

// behaviour is what a participant does when a branch is called.
type behaviour int

const (
	succeeds behaviour = iota
	isSlow             // and succeeds
	hangs              // exceeds the deadline of the first call; later calls succeed
	cuts               // does the work of the first call and closes its connection
	refuses
)

// plan is how the participants of one saga behave. It follows from seed and gid.
type plan struct {
	gid         string
	concurrent  bool
	actions     []behaviour
	compensates []behaviour
}

func planOf(seed uint64, gid string) plan {
	h := fnv.New64a()
	_, _ = h.Write([]byte(gid))
	r := rand.New(rand.NewPCG(seed, h.Sum64()))
	p := plan{gid: gid, concurrent: r.IntN(4) == 0}
	for range 1 + r.IntN(4) {
		p.actions, p.compensates = append(p.actions, draw(r, 10)), append(p.compensates, draw(r, 0))
	}
	return p
}

// draw returns a random behaviour, which refuses with a probability in percent.
func draw(r *rand.Rand, refusals int) behaviour {
	switch n := r.IntN(100); {
	case n < 10:
		return isSlow
	case n < 16:
		return hangs
	case n < 22:
		return cuts
	case n < 22+refusals:
		return refuses
	}
	return succeeds
}

// end returns the status that the saga must end with, and how many of its steps, from the
// first, must be compensated.
func (p plan) end() (status store.Status, compensated int) {
	for i, action := range p.actions {
		if action == refuses && p.concurrent {
			return store.StatusFailed, len(p.actions) // all are called at once
		}
		if action == refuses {
			return store.StatusFailed, i + 1
		}
	}
	return store.StatusSucceeded, 0
}

// submission returns the saga in the format of dtm's clients.
func (p plan) submission(participants string) []byte {
	type step struct {
		Action     string `json:"action"`
		Compensate string `json:"compensate"`
	}
	body := struct {
		GID        string   `json:"gid"`
		TransType  string   `json:"trans_type"`
		CustomData string   `json:"custom_data,omitempty"`
		Steps      []step   `json:"steps"`
		Payloads   []string `json:"payloads"`
	}{GID: p.gid, TransType: "saga"}
	if p.concurrent {
		body.CustomData = `{"concurrent":true}`
	}
	for i := range p.actions {
		body.Steps = append(body.Steps, step{participants + "/act", participants + "/undo"})
		body.Payloads = append(body.Payloads, fmt.Sprintf(`{"step":%d}`, i))
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // of strings
	}
	return text
}
