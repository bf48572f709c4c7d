package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sagabench/bench/internal/load"
	"sagabench/bench/internal/server"
	"sagabench/store"
)

// Protocol is how servers are asked to run a saga.
type Protocol string

// The protocols.
const (
	// ProtocolBench is a bench server's /bench/saga: the server makes the sagas.
	ProtocolBench Protocol = "bench"
	// ProtocolDTM is dtm's HTTP API, which dtm serves and our coordinator: the load
	// makes the sagas, submits them and waits for their end.
	ProtocolDTM Protocol = "dtm"
)

// Validate checks that it is one of the above.
func (p Protocol) Validate() error {
	if p != ProtocolBench && p != ProtocolDTM {
		return fmt.Errorf("%w: protocol: %q, must be %s or %s", store.ErrInvalid, p, ProtocolBench, ProtocolDTM)
	}
	return nil
}

// dtmPath is where dtm's API is; its users have it at the end of a server's URL.
const dtmPath = "/api/dtmsvr"

// base is a server's URL as the paths of its endpoints follow it.
func base(serverURL string) string {
	return strings.TrimSuffix(strings.TrimRight(serverURL, "/"), dtmPath)
}

// target is where to send requests for a server, and where its metrics are.
func (c Config) target(serverURL string) (t load.Target, metrics string, err error) {
	at := base(serverURL)
	if c.Protocol != ProtocolDTM {
		return load.Target{URL: at + "/bench/saga?" + c.Scenario.Query()}, at + "/metrics", nil
	}
	t = load.Target{URL: at + dtmPath + "/submit", Fail: c.Scenario.Fail}
	branches := server.BranchesOf(at, c.Token)
	if t.Submission, err = submission(c.Scenario, branches, false); err != nil {
		return t, "", err
	}
	t.Refused, err = submission(c.Scenario, branches, true)
	return t, at + "/api/metrics", err
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

// reachTimeout is for all servers together.
const reachTimeout = 10 * time.Second

// reach makes sure that the servers are there and have the branch endpoints that a
// bench server has. With dtm's protocol another server does, when no branch is called:
// then it must answer dtm's newGid.
func (c Config) reach(ctx context.Context, servers []string) error {
	missing, advice := "is no bench server, or has another token", ""
	endpoint := func(at string) string { return server.BranchesOf(at, c.Token).Action }
	switch {
	case c.Protocol == ProtocolDTM && c.Scenario.Branches == server.BranchesEmpty && c.Scenario.Fail == 0:
		missing = "does not speak dtm's API, or has another token"
		endpoint = func(at string) string { return at + dtmPath + "/newGid" }
	case c.Protocol == ProtocolDTM:
		missing, advice = "has no branches to call", ": leave --branches empty and --fail 0, or drive a bench server"
	}
	ctx, cancel := context.WithTimeoutCause(ctx, reachTimeout, fmt.Errorf("no answer within %v", reachTimeout))
	defer cancel()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, serverURL := range servers {
		if err := (load.Target{URL: serverURL}).Validate(); err != nil {
			return err
		}
		at := base(serverURL)
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint(at), nil)
		if err != nil {
			return fmt.Errorf("target: %w", err)
		}
		if c.Token.IsSet() {
			request.Header.Set("Authorization", "Bearer "+c.Token.Reveal())
		}
		response, err := client.Do(request)
		if err != nil {
			if cause := new(url.Error); errors.As(err, &cause) {
				err = cause.Err // without the key that is in the URL
			}
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return fmt.Errorf("target: %s: %w", at, err)
		}
		said, _ := io.ReadAll(io.LimitReader(response.Body, 1<<16))
		response.Body.Close()
		if response.StatusCode != http.StatusOK || !bytes.Contains(said, []byte("dtm_result")) { // others have a page for everything
			return fmt.Errorf("target: %s %s (%s)%s", at, missing, response.Status, advice)
		}
	}
	return nil
}
