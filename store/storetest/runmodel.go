package storetest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sagabench/internal/race"
	"sagabench/store"
	"sagabench/store/memstore"
)

// RunModel applies random sequences of batches and claims to a store of h and to a
// [memstore.Store], and compares every error and every record. The flag -rapid.checks
// sets the number of sequences. Each has its own store. RunModel reports the shortest
// sequence with a difference.
//
// Of the times, it compares only whether a saga is due. Each saga is due at once or in
// an hour, so none becomes due during a sequence.
//
// Each sequence has one goroutine: the race detector skips it.
func RunModel(t *testing.T, h Harness) {
	race.Skip(t)
	rapid.Check(t, func(rt *rapid.T) {
		opts := Options{Retention: rapid.SampledFrom([]time.Duration{long, long, 0}).Draw(rt, "retention")}
		p := &pair{t: rt, ctx: t.Context(), store: h.Open(t, opts), model: memstore.New(opts.Retention)}
		defer func() { require.NoError(rt, p.store.Close()) }()
		rt.Repeat(map[string]func(*rapid.T){
			"create":     p.step(p.create),
			"transition": p.step(p.transition),
			"batch":      p.step(p.batch),
			"claim":      p.step(p.claim),
			"get":        p.step(p.get),
			"reopen": p.step(func() {
				// Opening some stores takes far longer than everything else here.
				if rapid.IntRange(0, 3).Draw(rt, "reopen") == 0 {
					p.store, p.model = h.Reopen(t, p.store), p.model.Reopen()
					p.compareAll()
				}
			}),
		})
		p.compareAll()
		verify(rt, p.store)
	})
}

// pair is a store and its model.
type pair struct {
	t     *rapid.T
	ctx   context.Context
	store store.Store
	model *memstore.Store
}

// step returns f as an action for rapid. All actions draw from the same *rapid.T.
func (p *pair) step(f func()) func(*rapid.T) { return func(*rapid.T) { f() } }

func (p *pair) create() { p.apply(p.drawCreate(p.drawGID())) }

func (p *pair) transition() { p.apply(p.drawTransition(p.drawGID())) }

func (p *pair) batch() {
	var changes []store.Change
	for range rapid.IntRange(0, 6).Draw(p.t, "batch") {
		gid := p.drawGID()
		if _, err := p.model.Get(p.ctx, gid); err != nil || rapid.IntRange(0, 9).Draw(p.t, "again") == 0 {
			changes = append(changes, p.drawCreate(gid))
		} else {
			changes = append(changes, p.drawTransition(gid))
		}
	}
	p.apply(changes...)
}

func (p *pair) apply(changes ...store.Change) {
	want := p.model.Apply(p.ctx, changes)
	got := p.store.Apply(p.ctx, changes)
	require.Len(p.t, got, len(want))
	for i, c := range changes {
		require.Equal(p.t, kind(want[i]), kind(got[i]), "change %d, %+v: %v, but should be %v", i, c, got[i], want[i])
		p.compare(c.Gid())
	}
}

// claim claims in the store, and then the same sagas in the model: milliseconds decide
// which saga has been due the longest.
func (p *pair) claim() {
	owner := rapid.SampledFrom([]string{"second", "third"}).Draw(p.t, "owner")
	limit := rapid.IntRange(1, 4).Draw(p.t, "limit")
	records, err := p.store.ClaimDue(p.ctx, owner, long, limit)
	require.NoError(p.t, err)
	stats, err := p.model.Stats(p.ctx)
	require.NoError(p.t, err)
	require.Len(p.t, records, min(limit, int(stats.Due)), "claimed of %d that are due", stats.Due)
	for _, r := range records {
		want, due := p.model.ClaimOne(r.GID, owner, long)
		require.True(p.t, due, "%s is absent or not due", r.GID)
		p.equal(want, r)
		p.compare(r.GID)
	}
}

func (p *pair) get() { p.compare(p.drawGID()) }

// compare fails if the two hold different records of a saga.
func (p *pair) compare(gid string) {
	want, wantErr := p.model.Get(p.ctx, gid)
	got, err := p.store.Get(p.ctx, gid)
	require.Equal(p.t, kind(wantErr), kind(err), "get %q: %v", gid, err)
	if err == nil {
		p.equal(want, got)
	}
}

// compareAll fails if the two hold different sagas.
func (p *pair) compareAll() {
	pages := store.Query{Limit: 3}
	want, got := listAll(p.ctx, p.t, p.model, pages), listAll(p.ctx, p.t, p.store, pages)
	require.Equal(p.t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
	for gid, r := range want {
		p.equal(r, got[gid])
	}
	wantStats, err := p.model.Stats(p.ctx)
	require.NoError(p.t, err)
	gotStats, err := p.store.Stats(p.ctx)
	require.NoError(p.t, err)
	wantStats.OldestAge, gotStats.OldestAge = 0, 0
	require.Equal(p.t, wantStats, gotStats)
}

// equal compares two records; see [RunModel] on times.
func (p *pair) equal(want, got store.Record) {
	wellFormed(p.t, got)
	soon := time.Now().Add(long / 2)
	require.Equal(p.t, want.Due.Before(soon), got.Due.Before(soon), "%s is due %v, but should be %v", want.GID, got.Due, want.Due)
	got.Created, got.Updated, got.Due = want.Created, want.Updated, want.Due
	same(p.t, want, got)
}

// drawGID draws one of a few gids, so that changes meet, and sometimes an invalid gid.
func (p *pair) drawGID() string {
	return rapid.SampledFrom([]string{"a", "b", "B", "c-1", "c-2", "d", "e", "f", "g", "h", "{a}"}).Draw(p.t, "gid")
}

func (p *pair) drawCreate(gid string) *store.Create {
	body := rapid.SampledFrom([]string{"body", "another, longer", ""}).Draw(p.t, "body")
	return &store.Create{
		GID:   gid,
		Body:  []byte(body),
		Steps: 1 + len(body)%3,
		Owner: rapid.SampledFrom([]string{"first", "second"}).Draw(p.t, "owner"),
		Due:   rapid.SampledFrom([]time.Duration{0, -long, long}).Draw(p.t, "due"),
	}
}

// drawTransition draws a transition that mostly applies, and otherwise has one fault:
// the contract does not say which of two faults is reported.
func (p *pair) drawTransition(gid string) *store.Transition {
	r, err := p.model.Get(p.ctx, gid)
	if err != nil {
		r = submitted(gid)
		r.Marks = store.NewMarks(1)
	}
	// Most stay where they are, or few marks would ever meet another.
	next := "ssssssaaSF"
	faults := []string{"", "", "", "", "", "", "epoch", "from", "to", "due", "release", "branch", "owner"}
	switch {
	case r.Status == store.StatusAborting:
		next = "aaaaaF"
	case r.Status.Final():
		// From a final one all are invalid. From another it is a fault already.
		r.Status, faults = store.StatusSubmitted, faults[:1]
	}
	t := &store.Transition{
		GID:   gid,
		Epoch: r.Epoch,
		From:  r.Status,
		To:    store.Status(rapid.SampledFrom([]byte(next)).Draw(p.t, "to")),
		Due:   rapid.SampledFrom([]time.Duration{0, 0, -long, long}).Draw(p.t, "due"),
		Note:  rapid.SampledFrom([]string{"", "", "refused", "deferred,\nit took too long", strings.Repeat("note ", 3000)}).Draw(p.t, "note"),
	}
	if rapid.Bool().Draw(p.t, "owned") {
		t.Owner = r.Owner // which may be nobody
	}
	if t.To.Final() {
		t.Due = 0
	}
	t.Release = t.Due != 0 && rapid.Bool().Draw(p.t, "release")
	for _, b := range rapid.SliceOfNDistinct(rapid.IntRange(0, len(r.Marks)-1), 0, 3, rapid.ID).Draw(p.t, "branches") {
		m := rapid.SampledFrom([]store.Mark{store.MarkSucceeded, store.MarkSucceeded, store.MarkFailed}).Draw(p.t, "mark")
		t.Marks = append(t.Marks, store.SetMark{Branch: store.Branch(b), Mark: m})
	}
	switch rapid.SampledFrom(faults).Draw(p.t, "fault") {
	case "epoch":
		t.Epoch = rapid.SampledFrom([]uint32{r.Epoch - 1, r.Epoch + 1, r.Epoch + 10}).Draw(p.t, "epoch")
	case "from":
		t.From = store.Status(rapid.SampledFrom([]byte("saSF")).Draw(p.t, "from"))
	case "to":
		t.To = store.Status(rapid.SampledFrom([]byte("saSF-")).Draw(p.t, "to"))
	case "due":
		t.Due = long
	case "release":
		t.Release, t.Due = true, 0
	case "owner":
		t.Owner = "third"
	case "branch":
		t.Marks = []store.SetMark{{Branch: store.Branch(len(r.Marks)), Mark: store.MarkSucceeded}}
	}
	return t
}
