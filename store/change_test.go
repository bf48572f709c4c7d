package store

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCreate_Validate(t *testing.T) {
	good := func(change func(*Create)) *Create {
		c := &Create{GID: "a-Z_9", Body: []byte(`{}`), Steps: 1, Owner: "me"}
		change(c)
		return c
	}
	for name, tt := range map[string]struct {
		change *Create
		names  string // what the error must name; empty: valid
	}{
		"good":              {good(func(*Create) {}), ""},
		"longest":           {good(func(c *Create) { c.GID, c.Steps = strings.Repeat("g", MaxGIDBytes), MaxSteps }), ""},
		"gid empty":         {good(func(c *Create) { c.GID = "" }), "gid"},
		"gid too long":      {good(func(c *Create) { c.GID = strings.Repeat("g", MaxGIDBytes+1) }), "gid"},
		"gid with braces":   {good(func(c *Create) { c.GID = "{a}" }), "gid"},
		"gid with newline":  {good(func(c *Create) { c.GID = "a\nb" }), "gid"},
		"owner with dash":   {good(func(c *Create) { c.Owner = "a-b" }), "owner"},
		"owner too long":    {good(func(c *Create) { c.Owner = "ninechars" }), "owner"},
		"no steps":          {good(func(c *Create) { c.Steps = 0 }), "steps"},
		"too many steps":    {good(func(c *Create) { c.Steps = MaxSteps + 1 }), "steps"},
		"largest body":      {good(func(c *Create) { c.Body = bytes.Repeat([]byte("b"), MaxBodyBytes) }), ""},
		"body too large":    {good(func(c *Create) { c.Body = make([]byte, MaxBodyBytes+1) }), "body"},
		"body with a zero":  {good(func(c *Create) { c.Body = []byte("a\x00b") }), "body"},
		"body may be empty": {good(func(c *Create) { c.Body = nil }), ""},
	} {
		t.Run(name, func(t *testing.T) { requireNamed(t, tt.change.Validate(), tt.names) })
	}
}

func TestTransition_Validate(t *testing.T) {
	good := func(change func(*Transition)) *Transition {
		tr := &Transition{GID: "g", Epoch: 1, From: StatusSubmitted, To: StatusSubmitted}
		change(tr)
		return tr
	}
	marks := func(m ...SetMark) *Transition { return good(func(tr *Transition) { tr.Marks = m }) }
	for name, tt := range map[string]struct {
		change *Transition
		names  string
	}{
		"good":              {good(func(*Transition) {}), ""},
		"two marks":         {marks(SetMark{0, MarkSucceeded}, SetMark{2, MarkFailed}), ""},
		"a branch twice":    {marks(SetMark{3, MarkSucceeded}, SetMark{0, MarkSucceeded}, SetMark{3, MarkFailed}), "branch"},
		"branch too low":    {marks(SetMark{-1, MarkSucceeded}), "branch"},
		"branch too high":   {marks(SetMark{2 * MaxSteps, MarkSucceeded}), "branch"},
		"pending mark":      {marks(SetMark{0, MarkPending}), "mark"},
		"no epoch":          {good(func(tr *Transition) { tr.Epoch = 0 }), "epoch"},
		"from a final":      {good(func(tr *Transition) { tr.From, tr.To = StatusFailed, StatusFailed }), "status"},
		"backwards":         {good(func(tr *Transition) { tr.From = StatusAborting }), "status"},
		"aborted, succeeds": {good(func(tr *Transition) { tr.From, tr.To = StatusAborting, StatusSucceeded }), "status"},
		"no such status":    {good(func(tr *Transition) { tr.To = 'x' }), "status"},
		"final and due":     {good(func(tr *Transition) { tr.To, tr.Due = StatusSucceeded, time.Second }), "due"},
		"longest note":      {good(func(tr *Transition) { tr.Note = strings.Repeat("n", MaxNoteBytes) }), ""},
		"note too long":     {good(func(tr *Transition) { tr.Note = strings.Repeat("n", MaxNoteBytes+1) }), "note"},
		"note with zero":    {good(func(tr *Transition) { tr.Note = "a\x00" }), "note"},
		"released":          {good(func(tr *Transition) { tr.Release, tr.Due = true, time.Second }), ""},
		"released at once":  {good(func(tr *Transition) { tr.Release, tr.Due, tr.To = true, -1, StatusAborting }), ""},
		"released, not due": {good(func(tr *Transition) { tr.Release = true }), "release"},
		"released and over": {good(func(tr *Transition) { tr.Release, tr.To = true, StatusFailed }), "release"},
	} {
		t.Run(name, func(t *testing.T) { requireNamed(t, tt.change.Validate(), tt.names) })
	}
}

func TestCheckGID_AllowsItsAlphabetOnly(t *testing.T) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	for b := range 256 {
		name := "a" + string([]byte{byte(b)})
		alnum := strings.IndexByte(alphabet, byte(b)) >= 0
		require.Equal(t, alnum, CheckOwner(name) == nil, "owner %q", name)
		require.Equal(t, alnum || b == '_' || b == '-', CheckGID(name) == nil, "gid %q", name)
	}
}

func TestCheckBatch_RefusesAGidTwice(t *testing.T) {
	one := &Transition{GID: "one", Epoch: 1, From: StatusSubmitted, To: StatusSubmitted}
	two := &Transition{GID: "two", Epoch: 1, From: StatusSubmitted, To: StatusSubmitted}
	bad := &Transition{GID: "two", From: StatusSubmitted, To: StatusSubmitted}
	errs := CheckBatch([]Change{one, two, one, bad, two, one})
	for i, field := range []string{"", "", "gid", "epoch", "gid", "gid"} {
		requireNamed(t, errs[i], field)
	}
}

// BenchmarkCheckBatch is per change, with gids such as the coordinator makes.
func BenchmarkCheckBatch(b *testing.B) {
	for _, size := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			changes := make([]Change, size)
			for i := range changes {
				changes[i] = &Transition{GID: rand.Text(), Epoch: 1, From: StatusSubmitted, To: StatusSubmitted}
			}
			b.ReportAllocs()
			for done := 0; done < b.N; done += size {
				CheckBatch(changes)
			}
		})
	}
}

func TestQuery_Check(t *testing.T) {
	q, err := Query{}.Check()
	require.NoError(t, err)
	require.Equal(t, defaultListLimit, q.Limit)
	for name, bad := range map[string]Query{
		"limit":  {Limit: MaxListLimit + 1},
		"status": {Status: 'x'},
	} {
		_, err := bad.Check()
		requireNamed(t, err, name)
	}
}

func TestStatus_CanBecome(t *testing.T) {
	all := []Status{StatusSubmitted, StatusAborting, StatusSucceeded, StatusFailed}
	want := map[Status]string{StatusSubmitted: "saSF", StatusAborting: "aF", StatusSucceeded: "", StatusFailed: ""}
	for _, from := range all {
		got := ""
		for _, to := range all {
			if from.CanBecome(to) {
				got += string(rune(to))
			}
		}
		require.Equal(t, want[from], got, from)
	}
}

func requireNamed(t *testing.T, err error, field string) {
	t.Helper()
	if field == "" {
		require.NoError(t, err)
		return
	}
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, ": "+field+":")
}

func TestRecord_Check(t *testing.T) {
	good := func(change func(*Record)) *Record {
		r := &Record{GID: "the-gid", Status: StatusAborting, Marks: "yn--", Epoch: 1}
		change(r)
		return r
	}
	require.NoError(t, good(func(*Record) {}).Check())
	for name, r := range map[string]*Record{
		"status":   good(func(r *Record) { r.Status = 0 }),
		"epoch":    good(func(r *Record) { r.Epoch = 0 }),
		"none":     good(func(r *Record) { r.Marks = "" }),
		"branch 2": good(func(r *Record) { r.Marks = "yn!-" }),
	} {
		require.ErrorIs(t, r.Check(), ErrUnreadable, name)
		require.ErrorContains(t, r.Check(), name)
		require.ErrorContains(t, r.Check(), "the-gid")
	}
}
