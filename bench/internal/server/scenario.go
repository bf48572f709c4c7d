package server

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"sagabench/saga"
	"sagabench/store"
)

// Values of Scenario.Branches.
const (
	BranchesEmpty = "empty" // no URLs: each branch succeeds without a call
	BranchesHTTP  = "http"  // URLs of this server's own branch endpoints
)

// Scenario describes the sagas that /bench/saga makes.
type Scenario struct {
	Steps    int    // 1 to store.MaxSteps
	Branches string // BranchesEmpty or BranchesHTTP
	// Payload is the size of each step's JSON in bytes, 0 to saga.MaxPayloadBytes, and at
	// most store.MaxBodyBytes together. It is stored, and with BranchesHTTP sent.
	Payload int
	// Fail is the share of the sagas, 0 to 1, whose last action refuses, so that they are
	// compensated. That action is called, also with BranchesEmpty.
	Fail float64
}

// DefaultScenario returns sagas of two steps without branch calls.
func DefaultScenario() Scenario { return Scenario{Steps: 2, Branches: BranchesEmpty} }

// Query returns the scenario as the query of /bench/saga.
func (s Scenario) Query() string {
	return fmt.Sprintf("steps=%d&branches=%s&payload=%d&fail=%s",
		s.Steps, url.QueryEscape(s.Branches), s.Payload, strconv.FormatFloat(s.Fail, 'g', -1, 64))
}

// with returns s with the parameters of a query. The error wraps store.ErrInvalid and names
// the parameter.
func (s Scenario) with(query string) (Scenario, error) {
	if query == "" {
		return s, nil
	}
	for pair := range strings.SplitSeq(query, "&") {
		name, value := parameter(pair)
		var err error
		switch name {
		case "steps":
			s.Steps, err = strconv.Atoi(value)
		case "payload":
			s.Payload, err = strconv.Atoi(value)
		case "fail":
			s.Fail, err = strconv.ParseFloat(value, 64)
		case "branches":
			s.Branches = value
		default:
			return s, fmt.Errorf("%w: %q is no parameter; known are steps, branches, payload and fail", store.ErrInvalid, name)
		}
		if err != nil {
			return s, fmt.Errorf("%w: %s: %q is not a number, or too large", store.ErrInvalid, name, value)
		}
	}
	return s, s.Validate()
}

// ParseScenario returns the sagas that /bench/saga makes for a query by default.
func ParseScenario(query string) (Scenario, error) { return DefaultScenario().with(query) }

// parameter splits and unescapes a parameter. Malformed escapes stay as they are, which no
// parameter accepts.
func parameter(pair string) (name, value string) {
	name, value, _ = strings.Cut(pair, "=")
	if strings.ContainsAny(pair, "%+") {
		if unescaped, err := url.QueryUnescape(name); err == nil {
			name = unescaped
		}
		if unescaped, err := url.QueryUnescape(value); err == nil {
			value = unescaped
		}
	}
	return name, value
}

// SagaSteps returns the steps of a saga. If refused is set, its last action refuses.
func (s Scenario) SagaSteps(urls Branches, refused bool) []saga.Step {
	step := saga.Step{Payload: payload(s.Payload)}
	if s.Branches == BranchesHTTP {
		step.Action, step.Compensate = urls.Action, urls.Compensate
	}
	steps := make([]saga.Step, s.Steps)
	for i := range steps {
		steps[i] = step
	}
	if refused {
		steps[len(steps)-1].Action = urls.Refusing
	}
	return steps
}

// Validate checks the scenario; its error names the field and the limit.
func (s Scenario) Validate() error {
	switch {
	case s.Steps < 1 || s.Steps > store.MaxSteps:
		return fmt.Errorf("%w: steps: %d, must be 1 to %d", store.ErrInvalid, s.Steps, store.MaxSteps)
	case s.Branches != BranchesEmpty && s.Branches != BranchesHTTP:
		return fmt.Errorf("%w: branches: %q, must be %s or %s", store.ErrInvalid, s.Branches, BranchesEmpty, BranchesHTTP)
	case s.Payload < 0 || s.Payload > saga.MaxPayloadBytes:
		return fmt.Errorf("%w: payload: %d bytes, must be 0 to %d", store.ErrInvalid, s.Payload, saga.MaxPayloadBytes)
	case s.Steps*s.Payload > store.MaxBodyBytes:
		return fmt.Errorf("%w: payload: %d bytes in each of %d steps, at most %d together", store.ErrInvalid, s.Payload, s.Steps, store.MaxBodyBytes)
	case !(s.Fail >= 0 && s.Fail <= 1): // true for NaN, too
		return fmt.Errorf("%w: fail: %v, must be 0 to 1", store.ErrInvalid, s.Fail)
	}
	return nil
}

// payload returns n bytes of JSON: a string, or a digit if two quotes do not fit.
func payload(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "0"
	default:
		return `"` + strings.Repeat("x", n-2) + `"`
	}
}
