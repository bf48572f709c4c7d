package webui

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"sagabench/saga"
	"sagabench/saga/branch"
	"sagabench/saga/machine"
	"sagabench/store"
)

// sagaContent is the content of the page of one saga.
type sagaContent struct {
	GID, Status, State string
	Aborted, Held      string // reasons
	Next               moment
	Facts              []fact
	Steps              []stepView
	Attempts           []attemptView
	MoreAttempts       int
	Retry, Abort       bool // show the button
}

type fact struct {
	Name, Value string
	Time        moment // instead of Value, if there is one
}

// stepView is a step with its two branches.
type stepView struct {
	Number             int
	Notes              []string
	Action, Compensate branchView
}

type branchView struct {
	URL   string // empty: no call is made
	State string
	Class string // of the state: ok, bad, held, or none
}

// attemptsShown bounds the attempts shown of one saga: the last ones.
const attemptsShown = 200

// attemptView is one row of the timeline. Start and Width are in thousandths of the
// timeline's span.
type attemptView struct {
	Branch         string
	Outcome, Class string
	Began          moment
	After, Took    string
	Reason         string
	Start, Width   int
}

// notice returns the message after a button was pressed, by the action in the URL.
func notice(done string) string {
	switch done {
	case "abort":
		return "The saga is aborting: the steps that may have started are being compensated."
	case "retry":
		return "The retry is due now."
	default:
		return ""
	}
}

func (u *UI) showSaga(x *exchange) {
	gid := x.gid()
	info, release, err := u.reader.Saga(x.r.Context(), gid)
	if err != nil {
		u.fail(x, err)
		return
	}
	content := describe(info, time.Now())
	release()
	content.Attempts, content.MoreAttempts = timeline(u.cfg.Attempts.of(gid))
	u.show(x, http.StatusOK, pageSaga, view{
		Title: "Saga " + gid, Notice: notice(x.parameter("done")), Content: content,
	})
}

func (u *UI) abort(x *exchange) {
	u.finish(x, actionAbort, u.coordinator.Abort(x.r.Context(), x.gid(), "by request, on the page"))
}

func (u *UI) retry(x *exchange) {
	u.finish(x, actionRetry, u.coordinator.Retry(x.r.Context(), x.gid()))
}

// finish redirects to the saga, whose gid is valid if there is no error.
func (u *UI) finish(x *exchange, action string, err error) {
	if err != nil {
		u.fail(x, err)
	} else {
		x.redirect("/ui/sagas/" + x.gid() + "?done=" + action)
	}
	u.audit(x, action)
}

func describe(info saga.Info, now time.Time) sagaContent {
	deferred := !info.Status.Final() && info.Owner == ""
	v := sagaContent{
		GID: info.GID, Status: info.Status.String(), State: state(info, now), Aborted: info.State.Aborted,
		Facts: facts(info, now),
		Abort: info.Status == store.StatusSubmitted,
		Retry: deferred,
	}
	if deferred {
		v.Held, v.Next = info.State.RetryReason, ahead(info.Due, now)
	}
	for i, step := range info.Saga.Steps {
		s := stepView{Number: i + 1, Notes: stepNotes(step)}
		s.Action = viewBranch(info, store.Action(i), step.Action)
		s.Compensate = viewBranch(info, store.Compensation(i), step.Compensate)
		v.Steps = append(v.Steps, s)
	}
	return v
}

func facts(info saga.Info, now time.Time) []fact {
	s := info.Saga
	order := "one step after another"
	if s.Concurrent {
		order = "steps run concurrently, except those that wait for others"
	}
	list := []fact{
		{Name: "Created", Time: at(info.Created, now)},
		{Name: "Status since", Time: at(info.Updated, now)},
		{Name: "Order", Value: order},
	}
	add := func(name, value string, shown bool) {
		if shown {
			list = append(list, fact{Name: name, Value: value})
		}
	}
	add("Recovered", plural(int(info.Epoch)-1, "time"), info.Epoch > 1)
	add("Owner", info.Owner, info.Owner != "")
	if info.Owner != "" && !info.Status.Final() {
		list = append(list, fact{Name: "Lease until", Time: at(info.Due, now)})
	}
	add("Timeout", exact(s.Timeout), s.Timeout > 0)
	add("Timeout of a call", exact(s.RequestTimeout), s.RequestTimeout > 0)
	add("Retry interval", exact(s.RetryInterval), s.RetryInterval > 0)
	add("Retry limit", strconv.Itoa(s.RetryLimit), s.RetryLimit > 0)
	add("Headers of calls", strings.Join(slices.Sorted(maps.Keys(s.Headers)), ", "), len(s.Headers) > 0)
	add("Custom data", size(len(s.Custom)), s.Custom != "")
	add("Stored", size(len(info.Body)), true)
	return list
}

func stepNotes(step saga.Step) (notes []string) {
	if len(step.After) > 0 {
		var numbers []string
		for _, i := range step.After {
			numbers = append(numbers, strconv.Itoa(i+1))
		}
		notes = append(notes, "after "+strings.Join(numbers, ", "))
	}
	if step.Payload != "" {
		notes = append(notes, size(len(step.Payload)))
	}
	if step.Timeout > 0 {
		notes = append(notes, "at most "+exact(step.Timeout))
	}
	return notes
}

func viewBranch(info saga.Info, b store.Branch, raw string) branchView {
	v := branchView{URL: branch.RedactURL(raw), State: "not done"}
	switch info.Marks.At(b) {
	case store.MarkSucceeded:
		v.State, v.Class = "succeeded", "ok"
	case store.MarkFailed:
		v.State, v.Class = "refused", "bad"
	}
	i := slices.IndexFunc(info.State.Retries, func(h machine.Retry) bool { return h.Branch == b })
	if i < 0 || info.Status.Final() || info.Marks.At(b) != store.MarkPending {
		return v
	}
	v.State, v.Class = "undecided, retried later", "held"
	if tries := info.State.Retries[i].Tries; tries > 0 {
		v.State = plural(tries, "failed attempt")
	}
	return v
}

// outcome returns the name of an outcome, and its CSS class.
func outcome(o machine.Outcome) (name, class string) {
	switch o {
	case machine.Succeeded:
		return "succeeded", "ok"
	case machine.Failed:
		return "refused", "bad"
	case machine.Ongoing:
		return "undecided", "held"
	default:
		return "no answer", "held"
	}
}

// timeline places the last attempts between the start of the first and the end of the
// last. more is the number of attempts before these.
func timeline(all []attempt) (shown []attemptView, more int) {
	slices.SortStableFunc(all, func(a, b attempt) int { return a.began.Compare(b.began) })
	if more = max(len(all)-attemptsShown, 0); more > 0 {
		all = all[more:]
	}
	if len(all) == 0 {
		return nil, 0
	}
	first, last := all[0].began, time.Time{}
	for _, a := range all {
		if end := a.began.Add(a.took); end.After(last) {
			last = end
		}
	}
	span := cmp.Or(last.Sub(first), time.Nanosecond)
	now := time.Now()
	for _, a := range all {
		v := attemptView{
			Branch: fmt.Sprintf("step %d, %s", a.branch.Step()+1, saga.Op(a.branch)),
			Began:  at(a.began, now), After: exact(a.began.Sub(first)), Took: exact(a.took),
			Reason: a.reason,
			Start:  int(1000 * a.began.Sub(first) / span),
		}
		v.Outcome, v.Class = outcome(a.outcome)
		v.Width = min(max(int(1000*a.took/span), 6), 1000)
		v.Start = min(v.Start, 1000-v.Width)
		shown = append(shown, v)
	}
	return shown, more
}
