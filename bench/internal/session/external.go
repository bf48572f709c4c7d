package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"sagabench/bench/internal/environment"
	"sagabench/bench/internal/load"
	"sagabench/bench/internal/server"
	"sagabench/store"
	"sagabench/store/open"
)

// External are servers that run already. The store behind them is measured and audited
// if it is known, and left as it is. It cannot be an embedded one, which its server holds.
type External struct {
	URLs     []string
	Store    *open.Target // nil: unknown
	Protocol Protocol     // empty: ProtocolBench

	here int // how many of them answered that they are on this machine
}

// Protocol is how servers are asked to run a saga.
type Protocol string

// The protocols.
const (
	ProtocolBench Protocol = "bench" // a bench server's /bench/saga: the server makes the sagas
	ProtocolDTM   Protocol = "dtm"   // dtm's HTTP API: the load makes the sagas, submits them and waits for their end
)

// Validate returns an error that wraps store.ErrInvalid for other protocols.
func (p Protocol) Validate() error {
	if p != ProtocolBench && p != ProtocolDTM {
		return fmt.Errorf("%w: protocol: %q, must be %s or %s", store.ErrInvalid, p, ProtocolBench, ProtocolDTM)
	}
	return nil
}

func (x *External) describe(Config) site {
	which := fmt.Sprintf("%d servers", len(x.URLs))
	if len(x.URLs) == 1 {
		which = "a server"
	}
	if x.Protocol == ProtocolDTM {
		which += " with dtm's API"
	}
	s := site{store: x.Store, topology: "load on this machine, " + which + " that ran before", sharedHost: x.here > 0, appHere: x.here == len(x.URLs)}
	for _, u := range x.URLs {
		s.sharedHost = s.sharedHost || local(u)
		s.targets = append(s.targets, open.Redact(u))
	}
	if x.Store != nil {
		s.sharedHost = s.sharedHost || local(x.Store.URL())
	}
	return s
}

func (x *External) start(_ context.Context, cfg Config, _ *open.Target) (all []endpoint, err error) {
	for _, u := range x.URLs {
		e := benchEndpoint(base(u), cfg.Scenario)
		if x.Protocol == ProtocolDTM {
			if e, err = dtmEndpoint(base(u), cfg); err != nil {
				return nil, err
			}
		}
		all = append(all, e)
	}
	return all, nil
}

func (*External) watch(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

func (*External) stop(Config) error { return nil }

// base returns the part of a server's URL before the paths of its endpoints.
func base(serverURL string) string {
	return strings.TrimSuffix(strings.TrimRight(serverURL, "/"), dtmPath)
}

// checkTimeout is for all servers together.
const checkTimeout = 10 * time.Second

// check makes sure that the servers answer and have the branch endpoints of a bench
// server. With dtm's protocol and without branches to call, other servers do: they must
// answer dtm's newGid.
func (x *External) check(ctx context.Context, cfg Config) error {
	missing, advice := "is no bench server, or has another token", ""
	endpoint := func(at string) string { return server.BranchesOf(at, cfg.Token).Action }
	switch {
	case x.Protocol == ProtocolDTM && cfg.Scenario.Branches == server.BranchesEmpty && cfg.Scenario.Fail == 0:
		missing = "does not speak dtm's API, or has another token"
		endpoint = func(at string) string { return at + dtmPath + "/newGid" }
	case x.Protocol == ProtocolDTM:
		missing, advice = "has no branches to call", ": leave --branches empty and --fail 0, or drive a bench server"
	}
	ctx, cancel := context.WithTimeoutCause(ctx, checkTimeout, fmt.Errorf("no answer within %v", checkTimeout))
	defer cancel()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	x.here = 0
	for i, serverURL := range x.URLs {
		if err := (load.Target{URL: serverURL}).Validate(); err != nil {
			return err
		}
		at := base(serverURL)
		if slices.ContainsFunc(x.URLs[:i], func(other string) bool { return base(other) == at }) {
			return fmt.Errorf("target: %s is named twice: its cores and costs would count twice", open.Redact(at))
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint(at), nil)
		if err != nil {
			return fmt.Errorf("target: %w", err)
		}
		if cfg.Token.IsSet() {
			request.Header.Set("Authorization", "Bearer "+cfg.Token.Reveal())
		}
		request.Header.Set(server.HeaderMachine, environment.BootID())
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
		answer, _ := io.ReadAll(io.LimitReader(response.Body, 1<<16))
		response.Body.Close()
		if response.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte("dtm_result")) { // others answer any path with a page
			return fmt.Errorf("target: %s %s (%s)%s", at, missing, response.Status, advice)
		}
		if response.Header.Get(server.HeaderMachine) != "" {
			x.here++
		}
	}
	return nil
}
