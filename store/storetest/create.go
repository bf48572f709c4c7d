package storetest

import (
	"bytes"
	"strings"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

var createTests = []test{
	{"Create_StoresTheWholeSaga", long, func(f *fixture) {
		f.must(&store.Create{GID: "g", Body: []byte(`{"steps":3}`), Steps: 3, Owner: "host1", Due: long})
		r := f.get("g")
		same(f.t, store.Record{
			GID:     "g",
			Status:  store.StatusSubmitted,
			Marks:   store.NewMarks(3),
			Epoch:   1,
			Owner:   "host1",
			Created: r.Created,
			Updated: r.Created,
			Due:     r.Due,
			Body:    []byte(`{"steps":3}`),
		}, r)
		require.WithinDuration(f.t, r.Created.Add(long), r.Due, tolerance)
	}},

	{"Create_WithAnotherBody_Exists", long, func(f *fixture) {
		body := "The body"
		f.must(create("g", withBody(body)))
		was := f.get("g")
		for _, other := range []string{"", "The bod", "The body ", " The body", "the body", "The body\n", "Thé body"} {
			f.refused(store.ErrExists, create("g", func(c *store.Create) {
				c.Body, c.Owner, c.Steps, c.Due = []byte(other), "second", 5, 0
			}))
		}
		f.unchanged(was)
		require.Empty(f.t, f.claim("second", long, 10), "a refused saga made it due")
	}},

	{"Create_OfASagaThatExists_IsRefused", long, func(f *fixture) {
		f.must(create("claimed", dueAtOnce))
		f.claim("second", long, 1)
		f.createAll([]string{"new", "marked", "aborting", "succeeded", "failed"})
		f.must(
			stay(submitted("marked"), mark(0, store.MarkSucceeded)),
			move(submitted("aborting"), store.StatusAborting, mark(0, store.MarkFailed), note("refused")),
			move(submitted("succeeded"), store.StatusSucceeded, mark(2, store.MarkSucceeded)),
			move(submitted("failed"), store.StatusFailed, mark(0, store.MarkFailed)),
		)
		for _, gid := range []string{"new", "claimed", "marked", "aborting", "succeeded", "failed"} {
			was := f.get(gid)
			f.refused(store.ErrDuplicate, create(gid))
			f.refused(store.ErrDuplicate, create(gid, dueAtOnce, func(c *store.Create) { c.Owner = "third" }))
			f.refused(store.ErrExists, create(gid, func(c *store.Create) { c.Body, c.Due = []byte("another"), 0 }))
			f.unchanged(was)
		}
		require.Empty(f.t, f.claim("third", long, 10))
	}},

	{"Create_KeepsAnyBody", long, func(f *fixture) {
		bodies := map[string][]byte{
			"nil":      nil,
			"empty":    {},
			"every":    everyByte(),
			"utf8":     []byte("größer – 大きい – больше"),
			"quotes":   []byte(`'single' "double" \"escaped\" %s %d $1 {} [] ; --`),
			"lines":    []byte("\n\r\n\tone\ntwo\n\n"),
			"spaces":   []byte("  before and after  "),
			"header":   []byte("s 1 -- 0 0"),
			"mebibyte": bytes.Repeat([]byte("0123456789abcdef"), 1<<16),
		}
		for gid, body := range bodies {
			f.must(create(gid, func(c *store.Create) { c.Body = body }))
		}
		for gid, body := range bodies {
			require.True(f.t, bytes.Equal(body, f.get(gid).Body), "body %q came back changed", gid)
			f.refused(store.ErrDuplicate, create(gid, func(c *store.Create) { c.Body = append([]byte{}, body...) }))
		}
	}},

	{"Create_KeepsTheLargestBody", long, func(f *fixture) {
		body := bytes.Repeat([]byte(`\`), store.MaxBodyBytes) // SQL may escape each byte
		edit := func(c *store.Create) { c.Body = body }
		f.must(create("g", edit))
		f.refused(store.ErrDuplicate, create("g", edit))
		f.must(stay(submitted("g"), mark(3, store.MarkSucceeded), note("deferred"), due(-1)))
		r := f.claim("second", long, 1)[0]
		require.True(f.t, bytes.Equal(body, r.Body), "the body came back changed, %d bytes", len(r.Body))
		require.Equal(f.t, store.Marks("---y"), r.Marks)
		f.must(move(r, store.StatusSucceeded))
		require.True(f.t, bytes.Equal(body, f.get("g").Body))
		f.refused(store.ErrInvalid, create("h", func(c *store.Create) { c.Body = append(body, ' ') }))
	}},

	{"Create_TakesWhatIsAtTheLimits", long, func(f *fixture) {
		longest := strings.Repeat("aZ9_-xyz", store.MaxGIDBytes/8)
		f.must(
			create("s", func(c *store.Create) { c.GID, c.Steps, c.Owner = "_", 1, "Z" }),
			create(longest, func(c *store.Create) { c.Steps, c.Owner = store.MaxSteps, "aZ09bY18" }),
		)
		require.Equal(f.t, "Z", f.get("_").Owner)
		require.Equal(f.t, store.Marks("--"), f.get("_").Marks)
		require.Equal(f.t, "aZ09bY18", f.get(longest).Owner)

		last := store.Compensation(store.MaxSteps - 1)
		text := strings.Repeat("w", store.MaxNoteBytes)
		f.must(
			stay(submitted("_"), mark(0, store.MarkSucceeded), mark(1, store.MarkFailed)),
			stay(submitted(longest), mark(0, store.MarkFailed), mark(last, store.MarkSucceeded), note(text)),
		)
		require.Equal(f.t, store.Marks("yn"), f.get("_").Marks)
		require.Equal(f.t, store.NewMarks(store.MaxSteps).With(0, store.MarkFailed).With(last, store.MarkSucceeded), f.get(longest).Marks)
		require.Equal(f.t, text, f.get(longest).Note)
	}},

	{"Create_TellsSimilarGidsApart", long, func(f *fixture) {
		names := []string{"a", "A", "aa", "a-", "a_", "-a", "_a", "-", "_", "0", "00", "1e3", "null", strings.Repeat("a", 63), strings.Repeat("a", 64)}
		f.createAll(names)
		for i, gid := range names {
			r := f.get(gid)
			require.Equal(f.t, "body of "+gid, string(r.Body))
			if i%2 == 0 {
				f.must(move(r, store.StatusSucceeded))
			}
		}
		for i, gid := range names {
			require.Equal(f.t, i%2 == 0, f.get(gid).Status.Final(), "saga %q", gid)
		}
		require.Len(f.t, f.list(store.Query{}), len(names))
	}},

	{"Create_SharesNoMemoryWithItsCaller", long, func(f *fixture) {
		body := []byte("as given")
		f.must(create("g", func(c *store.Create) { c.Body = body }))
		copy(body, "not mine")
		require.Equal(f.t, "as given", string(f.get("g").Body))
		copy(f.get("g").Body, "not mine")
		require.Equal(f.t, "as given", string(f.get("g").Body))
	}},

	{"Get_OfAnInvalidGid_IsInvalid", long, func(f *fixture) {
		for _, gid := range invalidGids() {
			_, err := f.store.Get(f.ctx(), gid)
			require.ErrorIs(f.t, err, store.ErrInvalid, "gid %q", gid)
		}
	}},
}

// everyByte returns every byte that a body or a note may hold.
func everyByte() (every []byte) {
	for b := 1; b < 256; b++ {
		every = append(every, byte(b))
	}
	return every
}

func invalidGids() []string {
	return []string{"", "a{b}c", "{}", "a b", "a:b", "a*", "a\n", "a\x00", "é", "a/b", "../a", strings.Repeat("a", store.MaxGIDBytes+1)}
}
