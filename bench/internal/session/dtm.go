package session

import (
	"encoding/json"

	"sagabench/bench/internal/load"
	"sagabench/bench/internal/server"
)

// dtmPath is the path of dtm's API. Its users put it at the end of a server's URL.
const dtmPath = "/api/dtmsvr"

// dtmEndpoint is the endpoint of a server with dtm's API at this URL.
func dtmEndpoint(url string, cfg Config) (e endpoint, err error) {
	e = endpoint{load: load.Target{URL: url + dtmPath + "/submit", Fail: cfg.Scenario.Fail}, metrics: url + "/api/metrics"}
	branches := server.BranchesOf(url, cfg.Token)
	if e.load.Submission, err = submission(cfg.Scenario, branches, false); err != nil {
		return e, err
	}
	e.load.Refused, err = submission(cfg.Scenario, branches, true)
	return e, err
}

// submission is the body that dtm's clients send for such a saga.
func submission(s server.Scenario, branches server.Branches, refused bool) ([]byte, error) {
	type step struct {
		Action     string `json:"action"`
		Compensate string `json:"compensate"`
	}
	body := struct {
		GID        string   `json:"gid"`
		TransType  string   `json:"trans_type"`
		WaitResult bool     `json:"wait_result"`
		Steps      []step   `json:"steps"`
		Payloads   []string `json:"payloads"`
	}{GID: load.GIDPlaceholder, TransType: "saga", WaitResult: true}
	for _, made := range s.SagaSteps(branches, refused) {
		body.Steps = append(body.Steps, step{made.Action, made.Compensate})
		body.Payloads = append(body.Payloads, made.Payload)
	}
	return json.Marshal(body)
}
