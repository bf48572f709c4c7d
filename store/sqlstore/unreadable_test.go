package sqlstore

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

// A row that is no saga holds up neither those that are claimed with it nor those
// that are listed with it.
func TestUnreadable_HoldsUpNoOther(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		s := open(t, k.config())
		const good, first = 20, 100
		var want, bad []string
		for n := range good {
			requireApplied(t, s, create(n))
			want = append(want, gid(n))
		}
		spoil := []string{"status = ''", "status = 'x'", "marks = ''", "marks = 'y!--'", "epoch = 0"}
		if k.name == "postgres" {
			spoil = append(spoil, "epoch = -1", "epoch = 5000000000")
		}
		for i, what := range spoil {
			requireApplied(t, s, create(first+i))
			bad = append(bad, gid(first+i))
			s.mustExec(t, "UPDATE saga SET due = 0, created = 0, "+what+" WHERE gid = ?", gid(first+i))
		}

		claimed, err := s.ClaimDue(t.Context(), "other", time.Hour, 100)
		require.ErrorIs(t, err, store.ErrUnreadable)
		for _, gid := range bad {
			require.ErrorContains(t, err, gid)
			_, err := s.Get(t.Context(), gid)
			require.ErrorIs(t, err, store.ErrUnreadable)
		}
		var got []string
		for _, r := range claimed {
			require.EqualValues(t, 2, r.Epoch)
			got = append(got, r.GID)
		}
		slices.Sort(got)
		slices.Sort(want)
		require.Equal(t, want, got)
		claimed, err = s.ClaimDue(t.Context(), "other", time.Hour, 100)
		require.NoError(t, err, "they are left alone for a while")
		require.Empty(t, claimed)

		for _, q := range []store.Query{{}, {Status: store.StatusSubmitted}} {
			listed := 0
			require.NoError(t, store.Walk(t.Context(), s, q, func(store.Record) { listed++ }))
			require.Equal(t, good, listed)
		}
		errs := s.Apply(t.Context(), []store.Change{mark(first), create(first + 1)})
		require.ErrorIs(t, errs[0], store.ErrConflict)
		require.ErrorIs(t, errs[1], store.ErrDuplicate)
		findings, err := s.Verify(t.Context())
		require.NoError(t, err)
		require.Len(t, findings, len(bad))
		for _, gid := range bad {
			require.Contains(t, strings.Join(findings, "\n"), gid)
		}
	})
}
