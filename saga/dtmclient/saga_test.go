package dtmclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/dtm-labs/client/dtmcli"
	"github.com/stretchr/testify/require"
)

func refuse(call) error { return fmt.Errorf("no funds: %w", dtmcli.ErrFailure) }

func TestSaga_Serial(t *testing.T) {
	t.Parallel()
	at := start(t)
	s := at.saga()
	s.WaitResult = true
	at.add(s, "TransOut")
	at.add(s, "TransIn")
	require.NoError(t, s.Submit())
	require.Equal(t, []string{"TransOut", "TransIn"}, at.participants.names())
	for i, c := range at.participants.all() {
		require.JSONEq(t, `{"amount":30}`, c.body)
		require.Equal(t, "application/json", c.header.Get("Content-Type"))
		require.Equal(t, dtmcli.BranchBarrier{TransType: "saga", Gid: s.Gid, BranchID: fmt.Sprintf("%02d", i+1), Op: "action"}, *c.barrier)
	}
}

func TestSaga_IsNotWaitedForUnlessAsked(t *testing.T) {
	t.Parallel()
	at := start(t)
	released := make(chan struct{})
	at.participants.on("TransOut", func(call) error { <-released; return nil })
	s := at.saga()
	at.add(s, "TransOut")
	require.NoError(t, s.Submit())
	require.Equal(t, "submitted", at.query(s.Gid).Transaction.Status)
	close(released)
	at.until(s.Gid, "succeed")
}

func TestSaga_FailureIsCompensatedInReverse(t *testing.T) {
	t.Parallel()
	at := start(t)
	at.participants.on("TransIn", refuse)
	s := at.saga()
	s.WaitResult = true
	for _, step := range []string{"Log", "TransOut", "TransIn", "Notify"} {
		at.add(s, step)
	}
	err := s.Submit()
	require.ErrorContains(t, err, dtmcli.ResultFailure)
	require.ErrorContains(t, err, "step 3, action: 409 Conflict")
	require.Equal(t, []string{
		"Log", "TransOut", "TransIn", "TransInCompensate", "TransOutCompensate", "LogCompensate",
	}, at.participants.names())
	require.Contains(t, at.query(s.Gid).Transaction.RollbackReason, "step 3")
}

func TestSaga_ConcurrentKeepsOrders(t *testing.T) {
	t.Parallel()
	at := start(t)
	var both sync.WaitGroup // A and B wait for each other: one after another they would wait for ever
	both.Add(2)
	for _, step := range []string{"A", "B"} {
		at.participants.on(step, func(call) error { both.Done(); both.Wait(); return nil })
	}
	s := at.saga().SetConcurrent().AddBranchOrder(2, []int{0, 1}).AddBranchOrder(3, []int{2})
	s.WaitResult = true
	for _, step := range []string{"A", "B", "C", "D"} {
		at.add(s, step)
	}
	require.NoError(t, s.Submit())
	names := at.participants.names()
	require.ElementsMatch(t, []string{"A", "B"}, names[:2])
	require.Equal(t, []string{"C", "D"}, names[2:])
}

func TestSaga_ConcurrentFailureInvertsOrders(t *testing.T) {
	t.Parallel()
	at := start(t)
	at.participants.on("C", refuse)
	s := at.saga().SetConcurrent().AddBranchOrder(2, []int{0, 1}).AddBranchOrder(3, []int{2})
	s.WaitResult = true
	for _, step := range []string{"A", "B", "C", "D"} {
		at.add(s, step)
	}
	require.ErrorContains(t, s.Submit(), dtmcli.ResultFailure)
	names := at.participants.names()
	require.Len(t, names, 6)
	require.ElementsMatch(t, []string{"A", "B"}, names[:2])
	require.Equal(t, []string{"C", "CCompensate"}, names[2:4])
	require.ElementsMatch(t, []string{"ACompensate", "BCompensate"}, names[4:])
}

func TestSaga_BranchHeaders(t *testing.T) {
	t.Parallel()
	at := start(t)
	at.participants.on("TransOut", refuse)
	s := at.saga()
	s.WaitResult = true
	s.BranchHeaders = map[string]string{"X-Tenant": "t1"}
	at.add(s, "TransOut")
	require.ErrorContains(t, s.Submit(), dtmcli.ResultFailure)
	calls := at.participants.all()
	require.Len(t, calls, 2)
	for _, c := range calls {
		require.Equal(t, "t1", c.header.Get("X-Tenant"))
	}
}

func TestSaga_RequestTimeout(t *testing.T) {
	t.Parallel()
	at := start(t)
	again := make(chan struct{})
	at.participants.on("TransOut", func(c call) error {
		if c.attempt == 1 {
			<-again // so it does not answer in time
		} else {
			close(again)
		}
		return nil
	})
	s := at.saga()
	s.WithGlobalTransRequestTimeout(1)
	at.add(s, "TransOut")
	require.NoError(t, s.Submit())
	at.until(s.Gid, "succeed")
	calls := at.participants.all()
	require.Len(t, calls, 2)
	require.Greater(t, calls[1].at.Sub(calls[0].at), 300*time.Millisecond, "a second, less what the first took to arrive")
}

// RequestTimeout is dtm's client's own too: an answer that comes later finds nobody.
func TestSaga_WaitResult_EndsBeforeTheClientsTimeout(t *testing.T) {
	t.Parallel()
	for _, timeout := range []int64{4, 8} {
		t.Run(fmt.Sprint(timeout), func(t *testing.T) {
			t.Parallel()
			at := start(t)
			at.participants.on("TransOut", func(call) error { return dtmcli.ErrOngoing })
			s := at.saga()
			s.WaitResult = true
			s.RequestTimeout = timeout
			s.RetryInterval = 1
			at.add(s, "TransOut")
			began := time.Now()
			err := s.Submit()
			require.ErrorContains(t, err, dtmcli.ResultOngoing)
			require.ErrorContains(t, err, "before its request_timeout")
			limit := time.Duration(timeout) * time.Second
			require.Greater(t, time.Since(began), limit/3, "it gave up early")
			require.Less(t, time.Since(began), limit)
			require.Equal(t, "submitted", at.query(s.Gid).Transaction.Status)
		})
	}
}

func TestSaga_TimeoutToFail(t *testing.T) {
	t.Parallel()
	at := start(t)
	at.participants.on("TransIn", func(call) error { return dtmcli.ErrOngoing })
	s := at.saga()
	s.WaitResult = true
	s.TimeoutToFail, s.RetryInterval = 1, 60
	at.add(s, "TransOut")
	at.add(s, "TransIn")
	began := time.Now()
	require.ErrorContains(t, s.Submit(), "not done within 1s")
	require.GreaterOrEqual(t, time.Since(began), time.Second)
	require.Equal(t, []string{"TransOut", "TransIn", "TransInCompensate", "TransOutCompensate"}, at.participants.names())
}

func TestSaga_RetryInterval(t *testing.T) {
	t.Parallel()
	at := start(t)
	at.participants.on("TransOut", func(c call) error {
		return []error{dtmcli.ErrOngoing, errors.New("out of order"), nil}[c.attempt-1]
	})
	s := at.saga()
	s.WaitResult = true
	s.RetryInterval = 1
	at.add(s, "TransOut")
	require.NoError(t, s.Submit())
	calls := at.participants.all()
	require.Len(t, calls, 3)
	for i := range 2 {
		require.GreaterOrEqual(t, calls[i+1].at.Sub(calls[i].at), time.Second, "pause %d", i+1)
	}
}

func TestSaga_RetryLimit(t *testing.T) {
	t.Parallel()
	at := start(t)
	at.participants.on("TransOut", func(call) error { return errors.New("out of order") })
	s := at.saga()
	s.WaitResult = true
	s.WithRetryLimit(2)
	at.add(s, "TransOut")
	err := s.Submit()
	require.ErrorContains(t, err, dtmcli.ResultFailure)
	require.ErrorContains(t, err, "no answer after 2 retries")
	require.Equal(t, []string{"TransOut", "TransOut", "TransOut", "TransOutCompensate"}, at.participants.names())
	action := at.query(s.Gid).Branches[1]
	require.Equal(t, "action prepared", action.Op+" "+action.Status, "nobody knows what became of it")
}

func TestSaga_CompensationIsRepeatedUntilItSucceeds(t *testing.T) {
	t.Parallel()
	at := start(t)
	at.participants.on("TransOut", refuse)
	at.participants.on("TransOutCompensate", func(c call) error {
		if c.attempt < 4 {
			return dtmcli.ErrFailure
		}
		return nil
	})
	s := at.saga()
	s.WaitResult = true
	at.add(s, "TransOut")
	require.ErrorContains(t, s.Submit(), dtmcli.ResultFailure)
	require.Len(t, at.participants.names(), 5)
}

func TestSaga_SubmittedTwice(t *testing.T) {
	t.Parallel()
	at := start(t)
	first := at.saga()
	first.WaitResult = true
	at.add(first, "TransOut")
	require.NoError(t, first.Submit())
	require.NoError(t, first.Submit())

	other := dtmcli.NewSaga(at.dtm, first.Gid)
	at.add(other, "TransIn")
	err := other.Submit()
	require.ErrorContains(t, err, dtmcli.ResultFailure)
	require.ErrorContains(t, err, "the gid belongs to another saga")
	require.Equal(t, []string{"TransOut"}, at.participants.names())
}

func TestSaga_Query(t *testing.T) {
	t.Parallel()
	at := start(t)
	at.participants.on("TransIn", refuse)
	s := at.saga()
	s.WaitResult = true
	s.TimeoutToFail, s.RequestTimeout, s.RetryInterval, s.RetryLimit = 60, 9, 7, 3
	s.BranchHeaders = map[string]string{"X-Tenant": "t1"}
	at.add(s, "TransOut")
	at.add(s, "TransIn")
	require.Error(t, s.Submit())

	q := at.query(s.Gid)
	require.Equal(t, "failed", q.Transaction.Status)
	require.Equal(t, "saga", q.Transaction.TransType)
	require.WithinDuration(t, time.Now(), q.Transaction.CreateTime, time.Minute)
	var options dtmcli.TransOptions
	require.NoError(t, json.Unmarshal([]byte(q.Transaction.Options), &options))
	want := s.TransOptions
	want.WaitResult = false // of the request, not of the saga
	require.Equal(t, want, options)
	require.Equal(t, want, q.Transaction.TransOptions)
	require.Equal(t, s.Steps, q.Transaction.Steps)
	require.Equal(t, s.Payloads, q.Transaction.Payloads)

	var branches []string
	for _, b := range q.Branches {
		require.JSONEq(t, `{"amount":30}`, string(b.BinData))
		branches = append(branches, b.BranchID+" "+b.Op+" "+b.Status+" "+b.URL)
	}
	require.Equal(t, []string{
		"01 compensate succeed " + at.busi + "/TransOutCompensate",
		"01 action succeed " + at.busi + "/TransOut",
		"02 compensate succeed " + at.busi + "/TransInCompensate",
		"02 action failed " + at.busi + "/TransIn",
	}, branches)
}

func TestSaga_RefusedSaysWhy(t *testing.T) {
	t.Parallel()
	at := start(t)
	s := at.saga()
	at.add(s, "TransOut")
	at.add(s, "TransIn")
	s.Payloads = s.Payloads[:1]
	require.ErrorContains(t, s.Submit(), "payloads: 1, fewer than the 2 steps")

	s = at.saga()
	s.Add("http://10.0.0.1/TransOut", "", nil)
	require.ErrorContains(t, s.Submit(), "not on the allow-list")

	s = dtmcli.NewSaga(at.dtm, "")
	at.add(s, "TransOut")
	require.ErrorContains(t, s.Submit(), "gid")
}

func TestOtherTransactions_AreRefusedByName(t *testing.T) {
	t.Parallel()
	at := start(t)
	msg := dtmcli.NewMsg(at.dtm, dtmcli.MustGenGid(at.dtm)).Add(at.busi+"/TransIn", nil)
	require.ErrorContains(t, msg.Prepare(at.busi+"/Query"), `trans_type: \"msg\"`)
	require.ErrorContains(t, msg.Submit(), `trans_type: \"msg\"`)
	err := dtmcli.TccGlobalTransaction(at.dtm, dtmcli.MustGenGid(at.dtm), nil)
	require.ErrorContains(t, err, `trans_type: \"tcc\"`)
	require.Empty(t, at.participants.all())
}

func TestAbort_OfASagaThatIsHeldUp(t *testing.T) {
	t.Parallel()
	at := start(t)
	at.participants.on("TransOut", func(call) error { return dtmcli.ErrOngoing })
	s := at.saga()
	at.add(s, "TransOut")
	require.NoError(t, s.Submit())
	r, err := dtmcli.GetRestyClient().R().SetBody(s.TransBase).Post(at.dtm + "/abort")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, r.StatusCode(), r.String())
	at.until(s.Gid, "failed")
	names := at.participants.names()
	require.Equal(t, "TransOutCompensate", names[len(names)-1])
}
