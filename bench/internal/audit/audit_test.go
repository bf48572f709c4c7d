package audit

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/result"
	"sagabench/saga"
	"sagabench/store"
	"sagabench/store/memstore"
)

func TestJournal_AgreesWithAWholeStore(t *testing.T) {
	t.Parallel()
	s := memstore.New(time.Hour)
	put(t, s, "good", store.StatusSucceeded, "y-y-")
	put(t, s, "undone", store.StatusFailed, "yyny")
	put(t, s, "early", store.StatusFailed, "ny--")
	put(t, s, "second-first", store.StatusFailed, "--ny", saga.Step{After: []int{1}}, saga.Step{})
	put(t, s, "not-acknowledged", store.StatusSucceeded, "y-y-")
	got, err := Journals(t.Context(), s, time.Hour, journal(t, "S good", "F undone", "F early"))
	require.NoError(t, err)
	require.Empty(t, got.Findings)
	require.EqualValues(t, 3, got.Acknowledged)
	require.EqualValues(t, 5, *got.Terminal)
	require.EqualValues(t, 5, got.Sagas)
}

// unordered are the steps of a saga that calls both actions at once.
var unordered = []saga.Step{{}, {}}

// Each kind of fault is found, and counted as what it is.
func TestJournal_FindsEveryFault(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status                                     store.Status
		marks                                      store.Marks
		steps                                      []saga.Step // nil: as many as there are marks for, one after another
		told                                       string
		lost, bothOutcomes, uncompensated, unended int64
	}{
		"gone":                           {told: "S saga", lost: 1},
		"still running":                  {status: store.StatusSubmitted, marks: "y---", told: "S saga", lost: 1, unended: 1},
		"not acknowledged, running":      {status: store.StatusAborting, marks: "y-n-", unended: 1},
		"told succeed, failed":           {status: store.StatusFailed, marks: "yyny", told: "S saga", bothOutcomes: 1},
		"told failed, succeeded":         {status: store.StatusSucceeded, marks: "y-y-", told: "F saga", bothOutcomes: 1},
		"succeeded with an action open":  {status: store.StatusSucceeded, marks: "y---", bothOutcomes: 1},
		"succeeded and compensated":      {status: store.StatusSucceeded, marks: "yyy-", bothOutcomes: 1},
		"failed with all done":           {status: store.StatusFailed, marks: "y-y-", bothOutcomes: 1},
		"failed, first not undone":       {status: store.StatusFailed, marks: "y-ny", uncompensated: 1},
		"failed, refused one not undone": {status: store.StatusFailed, marks: "yyn-", uncompensated: 1},
		"failed, unanswered not undone":  {status: store.StatusFailed, marks: "yy--", uncompensated: 1},
		"failed, done after a refusal":   {status: store.StatusFailed, marks: "nyy-y-", uncompensated: 1},
		"failed, first never called":     {status: store.StatusFailed, marks: "--ny", steps: unordered, uncompensated: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := memstore.New(time.Hour)
			if tt.status != 0 {
				put(t, s, "saga", tt.status, tt.marks, tt.steps...)
			}
			var lines []string
			if tt.told != "" {
				lines = append(lines, tt.told)
			}
			got, err := Journals(t.Context(), s, time.Hour, journal(t, lines...))
			require.NoError(t, err)
			require.Equal(t, tt.lost, *got.Lost, got.Findings)
			require.Equal(t, tt.bothOutcomes, *got.BothOutcomes, got.Findings)
			require.Equal(t, tt.uncompensated, *got.Uncompensated, got.Findings)
			require.Equal(t, tt.unended, *got.Unfinished)
			require.EqualValues(t, tt.lost+tt.bothOutcomes+tt.uncompensated, got.Total)
		})
	}
}

// What the store was free to drop is not lost, and what a person stopped by force
// is not for the coordinator to undo. Both are counted.
func TestJournal_Exempt_IsCounted(t *testing.T) {
	t.Parallel()
	s := memstore.New(time.Hour)
	put(t, s, "kept", store.StatusSucceeded, "y-y-")
	create(t, s, "forced", "----", unordered)
	require.NoError(t, s.Apply(t.Context(), []store.Change{&store.Transition{
		GID: "forced", Epoch: 1, From: store.StatusSubmitted, To: store.StatusFailed, Note: `{"forced":true}`,
	}})[0])
	sent := time.Now().Add(-time.Hour - time.Second).UnixMicro()
	longAgo := fmt.Sprintf("S %d %d gone", sent, sent)
	got, err := Journals(t.Context(), s, time.Hour, journal(t, "S kept", longAgo))
	require.NoError(t, err)
	require.Empty(t, got.Findings)
	require.EqualValues(t, 2, got.Acknowledged)
	require.EqualValues(t, 1, got.Expired)
	require.EqualValues(t, 1, got.ForceStopped)

	require.Zero(t, got.FirstLost)

	later := fmt.Sprintf("S %d %d lost", sent, sent+1)
	got, err = Journals(t.Context(), s, 2*time.Hour, journal(t, later, "S kept", longAgo))
	require.NoError(t, err)
	require.EqualValues(t, 2, *got.Lost)
	require.Equal(t, sent, got.FirstLost.UnixMicro())
	require.WithinDuration(t, time.Now(), got.LastAcknowledged, time.Minute)
}

func TestStore_ListsOnlyTheFirstFindings(t *testing.T) {
	t.Parallel()
	s := memstore.New(time.Hour)
	for i := range MaxFindings + 5 {
		put(t, s, fmt.Sprintf("saga-%d", i), store.StatusSucceeded, "y---")
	}
	got, err := Store(t.Context(), s)
	require.NoError(t, err)
	require.Len(t, got.Findings, MaxFindings)
	require.Equal(t, MaxFindings+5, got.Total)
}

// A saga that no coordinator can read stays unfinished for ever: somebody must know.
func TestStore_NamesWhatCannotBeRun(t *testing.T) {
	t.Parallel()
	s := memstore.New(time.Hour)
	create(t, s, "good", "----", nil)
	alien := &store.Create{GID: "alien", Body: []byte("<xml/>"), Steps: 1, Owner: "test", Due: time.Hour}
	require.NoError(t, s.Apply(t.Context(), []store.Change{alien})[0])
	got, err := Store(t.Context(), s)
	require.NoError(t, err)
	require.EqualValues(t, 2, *got.Unfinished)
	require.Len(t, got.Findings, 1)
	require.Contains(t, got.Findings[0], "alien")
}

// put takes a saga to a status with marks that a coordinator may never leave
// it with: a store does not judge them.
func put(t *testing.T, s store.Applier, gid string, status store.Status, marks store.Marks, steps ...saga.Step) {
	t.Helper()
	create(t, s, gid, marks, steps)
	var set []store.SetMark
	for b := range store.Branch(len(marks)) {
		if marks.At(b) != store.MarkPending {
			set = append(set, store.SetMark{Branch: b, Mark: marks.At(b)})
		}
	}
	transition := &store.Transition{GID: gid, Epoch: 1, From: store.StatusSubmitted, To: status, Marks: set}
	require.NoError(t, s.Apply(t.Context(), []store.Change{transition})[0])
}

func create(t *testing.T, s store.Applier, gid string, marks store.Marks, steps []saga.Step) {
	t.Helper()
	what := saga.Saga{Steps: steps, Concurrent: steps != nil}
	if steps == nil {
		what.Steps = make([]saga.Step, marks.Steps())
	}
	body, err := json.Marshal(what)
	require.NoError(t, err)
	change := &store.Create{GID: gid, Body: body, Steps: marks.Steps(), Owner: "test", Due: time.Hour}
	require.NoError(t, s.Apply(t.Context(), []store.Change{change})[0])
}

// journal writes what clients were told. A line without a time is of now.
func journal(t *testing.T, lines ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	var text strings.Builder
	for _, line := range lines {
		if outcome, gid, _ := strings.Cut(line, " "); !strings.Contains(gid, " ") {
			now := time.Now().UnixMicro()
			line = fmt.Sprintf("%s %d %d %s", outcome, now, now, gid)
		}
		fmt.Fprintln(&text, line)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, result.FileAcknowledged), []byte(text.String()), 0o666))
	return dir
}
