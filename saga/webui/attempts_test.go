package webui

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/saga"
	"sagabench/saga/machine"
	"sagabench/store"
)

func TestAttempts_KeepTheLastOnes(t *testing.T) {
	t.Parallel()
	a := NewAttempts()
	const more = 2_500
	for i := range maxAttempts + more {
		a.Observe(saga.Attempt{Call: saga.Call{GID: fmt.Sprint("g", i%10), Branch: store.Branch(i)}, Outcome: machine.Succeeded})
	}
	total := 0
	for g := range 10 {
		of := a.of(fmt.Sprint("g", g))
		total += len(of)
		for i, kept := range of {
			require.Equal(t, store.Branch(more+g+10*i), kept.branch, "in their order")
		}
	}
	require.Equal(t, maxAttempts, total)
	require.Empty(t, a.of("g10"))
}

func TestAttempts_FromManyGoroutines(t *testing.T) {
	t.Parallel()
	a := NewAttempts()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range maxAttempts / 4 { // twice as many as are kept
				a.Observe(saga.Attempt{Call: saga.Call{GID: "g"}})
			}
			_ = a.of("g")
		})
	}
	all.Wait()
	require.Len(t, a.of("g"), maxAttempts)
}

func TestTimeline_PlacesAttempts(t *testing.T) {
	t.Parallel()
	none, more := timeline(nil)
	require.Empty(t, none)
	require.Zero(t, more)

	began := time.Now().Add(-time.Minute)
	at := func(after, took time.Duration) attempt {
		return attempt{gid: "g", branch: store.Compensation(1), began: began.Add(after), took: took, outcome: machine.Unknown, reason: "r"}
	}
	shown, more := timeline([]attempt{at(5*time.Second, 5*time.Second), at(0, time.Second), at(10*time.Second, 0)})
	require.Zero(t, more)
	require.Len(t, shown, 3)
	require.Equal(t, "step 2, compensate", shown[0].Branch)
	require.Equal(t, []int{0, 100, 500, 500, 994, 6}, []int{
		shown[0].Start, shown[0].Width, shown[1].Start, shown[1].Width, shown[2].Start, shown[2].Width,
	}, "in the order in which they began, none too thin to see, none beyond the end")

	var lots []attempt
	for i := range attemptsShown + 7 {
		lots = append(lots, at(time.Duration(i)*time.Second, 0))
	}
	shown, more = timeline(lots)
	require.Len(t, shown, attemptsShown)
	require.Equal(t, 7, more)
	require.Equal(t, "0s", shown[0].After)

	alone, _ := timeline([]attempt{at(0, 0)})
	require.Equal(t, 0, alone[0].Start+alone[0].Width-6)
}
