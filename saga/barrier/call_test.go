package barrier_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/saga/barrier"
)

// atOnce runs n calls at the same time and returns their errors.
func atOnce(n int, call func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			errs[i] = call(i)
		})
	}
	close(start)
	all.Wait()
	return errs
}

func TestCall_AHundredAtOnce_AreDoneOnce(t *testing.T) {
	t.Parallel()
	forEachAccount(t, func(t *testing.T, a account) {
		errs := atOnce(100, func(int) error { return a.add(t.Context(), action(a.gid()), -7) })
		require.NoError(t, errors.Join(errs...))
		require.Equal(t, 93, a.balance(t))
		require.Equal(t, 1, a.marks(t, a.gid()))
		if s, ok := a.(*sqlAccount); ok {
			require.EqualValues(t, 1, s.began.Load(), "no other should have begun")
		}
	})
}

func TestCall_CompensationFirst_IsEmpty_AndTheActionComesTooLate(t *testing.T) {
	t.Parallel()
	forEachAccount(t, func(t *testing.T, a account) {
		for range 2 {
			require.NoError(t, a.add(t.Context(), compensation(a.gid()), 7))
			require.Equal(t, 100, a.balance(t))
			require.Equal(t, 2, a.marks(t, a.gid()))
		}
		require.NoError(t, a.add(t.Context(), action(a.gid()), -7))
		require.Equal(t, 100, a.balance(t))
	})
}

func TestCall_ActionThenCompensation_EachIsDoneOnce(t *testing.T) {
	t.Parallel()
	forEachAccount(t, func(t *testing.T, a account) {
		for range 2 {
			require.NoError(t, a.add(t.Context(), action(a.gid()), -7))
			require.Equal(t, 93, a.balance(t))
		}
		for range 2 {
			require.NoError(t, a.add(t.Context(), compensation(a.gid()), 7))
			require.Equal(t, 100, a.balance(t))
		}
		require.NoError(t, a.add(t.Context(), action(a.gid()), -7))
		require.Equal(t, 100, a.balance(t))
	})
}

func TestCall_RefusedWork_LeavesNoMark(t *testing.T) {
	t.Parallel()
	forEachAccount(t, func(t *testing.T, a account) {
		for range 2 {
			err := a.add(t.Context(), action(a.gid()), -101)
			require.ErrorIs(t, err, barrier.ErrRefused)
			require.ErrorContains(t, err, "the balance is too low")
			require.Equal(t, 100, a.balance(t))
			require.Zero(t, a.marks(t, a.gid()))
		}
		a.set(t, 101)
		require.NoError(t, a.add(t.Context(), action(a.gid()), -101))
		require.Zero(t, a.balance(t))
		require.NoError(t, a.add(t.Context(), action(a.gid()), -101), "it was done: the low balance is no reason to refuse")
	})
}

func TestCall_CompensationOfARefusedAction_IsEmpty(t *testing.T) {
	t.Parallel()
	forEachAccount(t, func(t *testing.T, a account) {
		require.ErrorIs(t, a.add(t.Context(), action(a.gid()), -101), barrier.ErrRefused)
		require.NoError(t, a.add(t.Context(), compensation(a.gid()), 101))
		require.Equal(t, 100, a.balance(t))
	})
}

func TestCall_RefusedAHundredTimesAtOnce_ChangesNothing(t *testing.T) {
	t.Parallel()
	forEachAccount(t, func(t *testing.T, a account) {
		refused := 0
		for _, err := range atOnce(100, func(int) error { return a.add(t.Context(), action(a.gid()), -101) }) {
			require.Error(t, err)
			if errors.Is(err, barrier.ErrRefused) {
				refused++
			}
		}
		t.Logf("%d of 100 were refused, the others are to be asked again", refused)
		require.Positive(t, refused)
		require.Equal(t, 100, a.balance(t))
		require.Zero(t, a.marks(t, a.gid()))
	})
}

// Every saga is called twice for its action and twice for its compensation, all
// at the same time, and asked again as a coordinator would. Whichever came first,
// nothing of it is left in the balance.
func TestCall_ActionsAndCompensationsAtOnce_ConserveTheSum(t *testing.T) {
	t.Parallel()
	forEachAccount(t, func(t *testing.T, a account) {
		const sagas, together = 200, 4
		var askedAgain atomic.Int64
		for first := 0; first < sagas; first += together {
			errs := atOnce(together*4, func(i int) error {
				id := fmt.Sprintf("%s-%d", a.gid(), first+i%together)
				b, amount := action(id), -1
				if i/together%2 == 1 {
					b, amount = compensation(id), 1
				}
				for range 20 {
					if err := a.add(t.Context(), b, amount); err == nil {
						return nil
					}
					askedAgain.Add(1)
				}
				return errors.New("never succeeded")
			})
			require.NoError(t, errors.Join(errs...))
		}
		require.Equal(t, 100, a.balance(t))
		for i := range sagas {
			require.Equal(t, 2, a.marks(t, fmt.Sprintf("%s-%d", a.gid(), i)))
		}
		if s, ok := a.(*sqlAccount); ok {
			t.Logf("%d works begun, %d calls asked again", s.began.Load(), askedAgain.Load())
		}
	})
}

func TestCall_SeveralInARequest_AreToldApart(t *testing.T) {
	t.Parallel()
	forEachAccount(t, func(t *testing.T, a account) {
		for range 2 {
			request := action(a.gid())
			require.NoError(t, a.add(t.Context(), request, -1))
			require.NoError(t, a.add(t.Context(), request, -10))
			require.Equal(t, 89, a.balance(t))
		}
		undo := compensation(a.gid())
		require.NoError(t, a.add(t.Context(), undo, 1))
		require.NoError(t, a.add(t.Context(), undo, 10))
		require.NoError(t, a.add(t.Context(), undo, 5), "its action was never done")
		require.Equal(t, 100, a.balance(t))
	})
}

func TestCall_EachBranchAndOpIsItsOwn(t *testing.T) {
	t.Parallel()
	forEachAccount(t, func(t *testing.T, a account) {
		add := func(branch, op string) {
			t.Helper()
			b := &barrier.Barrier{TransType: "tcc", GID: a.gid(), BranchID: branch, Op: op}
			require.NoError(t, a.add(t.Context(), b, 1))
		}
		add("01", "try")
		add("01", "confirm")
		add("02", "try")
		require.Equal(t, 103, a.balance(t))
		add("02", "cancel")
		add("03", "commit")
		add("04", "action")
		add("04", "rollback")
		require.Equal(t, 107, a.balance(t))
		add("05", "cancel")
		add("05", "try")
		add("06", "rollback")
		add("06", "action")
		require.Equal(t, 107, a.balance(t))
	})
}

func TestCall_RefusesWhatCouldPassForAnother(t *testing.T) {
	t.Parallel()
	forEachAccount(t, func(t *testing.T, a account) {
		b := action(a.gid())
		b.BranchID = ""
		require.ErrorContains(t, a.add(t.Context(), b, 1), "branch_id is empty")
		require.Equal(t, 100, a.balance(t))
	})
}
