package httpapi

import (
	"encoding/json"
	"time"

	"sagabench/saga"
)

// submission holds the fields of a submit that are used.
type submission struct {
	GID            string            `json:"gid"`
	TransType      string            `json:"trans_type"`
	Protocol       string            `json:"protocol"`
	Steps          []step            `json:"steps"`
	Payloads       []string          `json:"payloads"`
	CustomData     string            `json:"custom_data"`
	WaitResult     bool              `json:"wait_result"`
	TimeoutToFail  int64             `json:"timeout_to_fail"`
	RequestTimeout int64             `json:"request_timeout"`
	RetryInterval  int64             `json:"retry_interval"`
	RetryLimit     int64             `json:"retry_limit"`
	BranchHeaders  map[string]string `json:"branch_headers"`
}

type step struct {
	Action     string  `json:"action"`
	Compensate string  `json:"compensate"`
	Data       *string `json:"data"` // the payload, from older clients
}

// custom holds the fields of custom_data that are used. Clients set it for concurrent
// sagas only.
type custom struct {
	Concurrent bool          `json:"concurrent"`
	Orders     map[int][]int `json:"orders"` // by step, the steps that it waits for
}

const (
	typeSaga     = "saga"
	protocolHTTP = "http"
)

func checkType(transType string) error {
	if transType != typeSaga {
		return invalid("trans_type: %.50q, only %q is served here", transType, typeSaga)
	}
	return nil
}

// saga converts a submission. Package saga checks the rest.
func (s *submission) saga() (*saga.Saga, error) {
	if err := checkType(s.TransType); err != nil {
		return nil, err
	}
	if s.Protocol != "" && s.Protocol != protocolHTTP {
		return nil, invalid("protocol: %.50q, must be %q or empty", s.Protocol, protocolHTTP)
	}
	for _, f := range [...]struct {
		name       string
		value, max int64
	}{
		{"timeout_to_fail", s.TimeoutToFail, int64(saga.MaxTimeout / time.Second)},
		{"request_timeout", s.RequestTimeout, int64(saga.MaxRequestTimeout / time.Second)},
		{"retry_interval", s.RetryInterval, int64(saga.MaxRetryInterval / time.Second)},
		{"retry_limit", s.RetryLimit, saga.MaxRetryLimit},
	} {
		if f.value < 0 || f.value > f.max {
			return nil, invalid("%s: %d, must be 0 to %d", f.name, f.value, f.max)
		}
	}
	steps, err := s.steps()
	if err != nil {
		return nil, err
	}
	made := &saga.Saga{
		GID:            s.GID,
		Steps:          steps,
		Timeout:        time.Duration(s.TimeoutToFail) * time.Second,
		RequestTimeout: time.Duration(s.RequestTimeout) * time.Second,
		RetryInterval:  time.Duration(s.RetryInterval) * time.Second,
		RetryLimit:     int(s.RetryLimit),
		Headers:        s.BranchHeaders,
		Custom:         s.CustomData,
	}
	return made, s.order(made)
}

func (s *submission) steps() ([]saga.Step, error) {
	steps := make([]saga.Step, len(s.Steps))
	for i, from := range s.Steps {
		steps[i] = saga.Step{Action: from.Action, Compensate: from.Compensate}
		switch {
		case i < len(s.Payloads):
			steps[i].Payload = s.Payloads[i]
		case from.Data != nil:
			steps[i].Payload = *from.Data
		default:
			return nil, invalid("payloads: %d, fewer than the %d steps", len(s.Payloads), len(s.Steps))
		}
	}
	return steps, nil
}

// order sets the order of the steps from custom_data.
func (s *submission) order(to *saga.Saga) error {
	if s.CustomData == "" {
		return nil
	}
	if len(s.CustomData) > saga.MaxCustomBytes { // before it is decoded
		return invalid("custom_data: %d bytes, at most %d", len(s.CustomData), saga.MaxCustomBytes)
	}
	var c custom
	if err := explain("custom_data", json.Unmarshal([]byte(s.CustomData), &c)); err != nil {
		return err
	}
	for i, before := range c.Orders {
		if i < 0 || i >= len(to.Steps) {
			return invalid("custom_data: orders: no step %d, they are 0 to %d", i, len(to.Steps)-1)
		}
		if c.Concurrent {
			to.Steps[i].After = before
			continue
		}
		// Running steps one after another keeps any order that is possible.
		for _, j := range before {
			if j < 0 || j >= i {
				return invalid("custom_data: orders: step %d cannot wait for step %d in a saga that is not concurrent", i, j)
			}
		}
	}
	to.Concurrent = c.Concurrent
	return nil
}
