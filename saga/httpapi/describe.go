package httpapi

import (
	"time"

	"sagabench/saga"
	"sagabench/store"
)

// transaction is a saga in dtm's format.
type transaction struct {
	ID               int        `json:"id"` // always 0, as with dtm on Redis
	CreateTime       time.Time  `json:"create_time"`
	UpdateTime       time.Time  `json:"update_time"` // when its status last changed
	GID              string     `json:"gid"`
	TransType        string     `json:"trans_type"`
	Status           string     `json:"status"`
	Protocol         string     `json:"protocol"`
	FinishTime       *time.Time `json:"finish_time,omitempty"`   // if it succeeded
	RollbackTime     *time.Time `json:"rollback_time,omitempty"` // if it failed
	Result           string     `json:"result,omitempty"`        // why it waits, unless it has ended
	RollbackReason   string     `json:"rollback_reason,omitempty"`
	Options          string     `json:"options"` // JSON text
	CustomData       string     `json:"custom_data,omitempty"`
	NextCronInterval int64      `json:"next_cron_interval,omitempty"` // seconds, if the saga asked for them
	NextCronTime     *time.Time `json:"next_cron_time,omitempty"`     // when it is due, unless it has ended
	Owner            string     `json:"owner,omitempty"`
	options
	Steps    []stepURLs `json:"steps,omitempty"`    // in the answer to query only
	Payloads []string   `json:"payloads,omitempty"` // likewise
}

type stepURLs struct {
	Action     string `json:"action"`
	Compensate string `json:"compensate"`
}

// options are the options of the submit, times in seconds. transaction.Options has
// them as text, too.
type options struct {
	TimeoutToFail  int64             `json:"timeout_to_fail,omitempty"`
	RequestTimeout int64             `json:"request_timeout,omitempty"`
	RetryInterval  int64             `json:"retry_interval,omitempty"`
	BranchHeaders  map[string]string `json:"branch_headers,omitempty"`
	Concurrent     bool              `json:"concurrent"`
	RetryLimit     int               `json:"retry_limit,omitempty"`
}

func describe(info saga.Info) transaction {
	s := info.Saga
	updated := info.Updated.UTC()
	t := transaction{
		CreateTime:       info.Created.UTC(),
		UpdateTime:       updated,
		GID:              info.GID,
		TransType:        typeSaga,
		Status:           info.Status.String(),
		Protocol:         protocolHTTP,
		RollbackReason:   info.State.Aborted,
		CustomData:       s.Custom,
		NextCronInterval: seconds(s.RetryInterval),
		Owner:            info.Owner,
		options: options{
			TimeoutToFail:  seconds(s.Timeout),
			RequestTimeout: seconds(s.RequestTimeout),
			RetryInterval:  seconds(s.RetryInterval),
			BranchHeaders:  s.Headers,
			Concurrent:     s.Concurrent,
			RetryLimit:     s.RetryLimit,
		},
	}
	t.Options = string(encode(t.options))
	switch info.Status {
	case store.StatusSucceeded:
		t.FinishTime = &updated
	case store.StatusFailed:
		t.RollbackTime = &updated
	default:
		due := info.Due.UTC()
		t.NextCronTime, t.Result = &due, info.State.RetryReason
	}
	return t
}

// describeWhole is describe with the steps and payloads. Lists leave these out, since
// they may be megabytes.
func describeWhole(info saga.Info) transaction {
	t := describe(info)
	for _, s := range info.Saga.Steps {
		t.Steps = append(t.Steps, stepURLs{s.Action, s.Compensate})
		t.Payloads = append(t.Payloads, s.Payload)
	}
	return t
}

// seconds rounds up: a library may set less than one second, and 0 means unset.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// branchAnswer is a branch in dtm's format. Its times are the saga's.
type branchAnswer struct {
	ID         int       `json:"id"`
	CreateTime time.Time `json:"create_time"`
	UpdateTime time.Time `json:"update_time"`
	GID        string    `json:"gid"`
	URL        string    `json:"url,omitempty"`
	BinData    []byte    `json:"bin_data,omitempty"` // base64 of the payload
	BranchID   string    `json:"branch_id"`
	Op         string    `json:"op"`
	Status     string    `json:"status"`
}

// branches lists a saga's branches in dtm's order: the compensation of a step before
// its action.
func branches(info saga.Info) []branchAnswer {
	list := make([]branchAnswer, 0, 2*len(info.Saga.Steps))
	for i, s := range info.Saga.Steps {
		list = append(list,
			describeBranch(info, store.Compensation(i), s.Compensate),
			describeBranch(info, store.Action(i), s.Action))
	}
	return list
}

func describeBranch(info saga.Info, b store.Branch, url string) branchAnswer {
	return branchAnswer{
		CreateTime: info.Created.UTC(),
		UpdateTime: info.Updated.UTC(),
		GID:        info.GID,
		URL:        url,
		BinData:    []byte(info.Saga.Steps[b.Step()].Payload),
		BranchID:   saga.BranchID(b),
		Op:         saga.Op(b),
		Status:     branchStatus(info.Marks.At(b)),
	}
}

func branchStatus(m store.Mark) string {
	switch m {
	case store.MarkSucceeded:
		return "succeed"
	case store.MarkFailed:
		return "failed"
	default:
		return "prepared"
	}
}
