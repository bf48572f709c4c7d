package saga_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/internal/race"
	"sagabench/internal/testkit"
	"sagabench/saga"
	"sagabench/saga/machine"
	"sagabench/store"
	"sagabench/store/memstore"
	"sagabench/store/redisstore"
)

// bodyTo is a saga of one step at a participant.
func bodyTo(host, payload string) string {
	return fmt.Sprintf(`{"steps":[{"action":"http://%s/do","payload":%q}]}`, host, payload)
}

// gauge is a participant, host by host, that counts the calls under way.
type gauge struct {
	answer func(ctx context.Context, c saga.Call) (machine.Outcome, string)

	mu        sync.Mutex
	now, most map[string]int
}

func newGauge(answer func(ctx context.Context, c saga.Call) (machine.Outcome, string)) *gauge {
	return &gauge{answer: answer, now: map[string]int{}, most: map[string]int{}}
}

func (*gauge) Check(string) error { return nil }

func (g *gauge) Call(ctx context.Context, c saga.Call) (machine.Outcome, string) {
	host, _, _ := strings.Cut(strings.TrimPrefix(c.URL, "http://"), "/")
	g.add(host, 1)
	defer g.add(host, -1)
	return g.answer(ctx, c)
}

func (g *gauge) add(host string, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now[host] += n
	g.most[host] = max(g.most[host], g.now[host])
}

func (g *gauge) mostOf(host string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.most[host]
}

// hangs is the answer of a participant that gives none.
func hangs(ctx context.Context) (machine.Outcome, string) {
	<-ctx.Done()
	return machine.Unknown, ctx.Err().Error()
}

// hangingUntil are participants of which those named hangs… hang until they are mended;
// the others take 20 ms.
func hangingUntil(mended *atomic.Bool) *gauge {
	return newGauge(func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
		if strings.HasPrefix(c.URL, "http://hangs") && !mended.Load() {
			return hangs(ctx)
		}
		time.Sleep(20 * time.Millisecond)
		return machine.Succeeded, ""
	})
}

// Participants that hang, with many times more due sagas than there are slots, do
// not hold up those of another one that fell due later. When they are mended, theirs
// end too.
func TestRecovery_HangingParticipants_DelayNoOther(t *testing.T) {
	t.Parallel()
	for hanging := 1; hanging <= 3; hanging++ {
		t.Run(fmt.Sprint(hanging), func(t *testing.T) {
			t.Parallel()
			if hanging != 2 {
				race.Skip(t)
			}
			synctest.Test(t, func(t *testing.T) { hangingParticipants(t, hanging) })
		})
	}
}

func hangingParticipants(t *testing.T, hanging int) {
	const slots, stuck, healthy = 32, 1000, 50
	model := memstore.New(time.Hour)
	for i := range stuck {
		create(t, model, fmt.Sprint("stuck-", i), bodyTo(fmt.Sprint("hangs-", i%hanging), ""), 1)
	}
	time.Sleep(time.Second)
	for i := range healthy {
		create(t, model, fmt.Sprint("healthy-", i), bodyTo("healthy", ""), 1)
	}
	cfg := unhurried()
	cfg.MaxRecovering, cfg.RequestTimeout, cfg.Lease = slots, 3*time.Second, 10*time.Second
	cfg.MaxRetryInterval = 10 * time.Second
	var mended atomic.Bool
	participants := hangingUntil(&mended)
	began := time.Now()
	c := start(t, model, participants, cfg)
	for i := range healthy {
		require.Equal(t, store.StatusSucceeded, mustWait(t, c, fmt.Sprint("healthy-", i)).Status)
	}
	require.Less(t, time.Since(began), 3*time.Second, "sooner than a call ends that hangs")

	// Also later, when the calls that hang no longer begin and end together.
	for i := range 10 {
		time.Sleep(time.Duration(1700+137*i) * time.Millisecond)
		gid := fmt.Sprint("later-", i)
		create(t, model, gid, bodyTo("healthy", ""), 1)
		began := time.Now()
		require.Equal(t, store.StatusSucceeded, mustWait(t, c, gid).Status)
		require.Less(t, time.Since(began), 3*time.Second)
	}
	mended.Store(true)
	for i := range stuck {
		record, err := c.Wait(t.Context(), fmt.Sprint("stuck-", i))
		require.NoError(t, err)
		require.Equal(t, store.StatusSucceeded, record.Status)
	}
	all := 0
	for i := range hanging {
		all += participants.mostOf(fmt.Sprint("hangs-", i))
	}
	require.GreaterOrEqual(t, all, slots*3/4, "what is free is used")
	require.Positive(t, participants.mostOf("healthy"))
}

// Nor do sagas that come to it later: their first step is another participant's.
func TestRecovery_SagasThatGoOnToAHangingParticipant_DelayNoOther(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	synctest.Test(t, func(t *testing.T) {
		const stuck, healthy = 2000, 50
		model := memstore.New(time.Hour)
		for i := range stuck {
			create(t, model, fmt.Sprint("stuck-", i), `{"steps":[{"action":"http://healthy/1"},{"action":"http://hangs/2"}]}`, 2)
		}
		time.Sleep(time.Second)
		for i := range healthy {
			create(t, model, fmt.Sprint("healthy-", i), bodyTo("healthy", ""), 1)
		}
		var mended atomic.Bool
		participants := hangingUntil(&mended)
		began := time.Now()
		c := start(t, model, participants, saga.DefaultConfig())
		for i := range healthy {
			require.Equal(t, store.StatusSucceeded, mustWait(t, c, fmt.Sprint("healthy-", i)).Status)
		}
		require.Less(t, time.Since(began), 3*time.Second, "sooner than a call ends that hangs")
		mended.Store(true)
		for i := range stuck {
			record, err := c.Wait(t.Context(), fmt.Sprint("stuck-", i)) // a deferral may take up to MaxRetryInterval
			require.NoError(t, err)
			require.Equal(t, store.StatusSucceeded, record.Status)
		}
	})
}

// The same over real stores, where the calls that hang do not end during the test.
func TestRecovery_ParticipantThatNeverAnswers_DelaysNoOther(t *testing.T) {
	onStores(t, time.Hour, func(t *testing.T, open opener) {
		const slots, stuck, healthy = 8, 200, 20
		s := open()
		for i := range stuck {
			create(t, s, fmt.Sprint("stuck-", i), bodyTo("hangs", ""), 1)
		}
		for i := range healthy {
			create(t, s, fmt.Sprint("healthy-", i), bodyTo("healthy", ""), 1)
		}
		cfg := patient()
		cfg.MaxRecovering = slots
		participants := newGauge(func(ctx context.Context, c saga.Call) (machine.Outcome, string) {
			if strings.HasPrefix(c.URL, "http://hangs") {
				return hangs(ctx)
			}
			return machine.Succeeded, ""
		})
		c := start(t, s, participants, cfg)
		for i := range healthy {
			require.Equal(t, store.StatusSucceeded, mustWait(t, c, fmt.Sprint("healthy-", i)).Status)
		}
		require.LessOrEqual(t, participants.mostOf("hangs"), slots*3/4)
	})
}

// A backlog at one healthy participant has most of the slots, and none of it is
// deferred.
func TestRecovery_OneHealthyParticipant_IsNotSlowedDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const slots, sagas = 32, 960
		model := memstore.New(time.Hour)
		for i := range sagas {
			create(t, model, fmt.Sprint("left-", i), bodyTo("healthy", ""), 1)
		}
		cfg := unhurried()
		cfg.MaxRecovering = slots
		participants := newGauge(func(context.Context, saga.Call) (machine.Outcome, string) {
			time.Sleep(20 * time.Millisecond)
			return machine.Succeeded, ""
		})
		began := time.Now()
		c := start(t, model, participants, cfg)
		for i := range sagas {
			require.Equal(t, store.StatusSucceeded, mustWait(t, c, fmt.Sprint("left-", i)).Status)
			require.EqualValues(t, 2, mustGet(t, model, fmt.Sprint("left-", i)).Epoch, "it was claimed once")
		}
		require.Equal(t, slots*3/4, participants.mostOf("healthy"))
		require.Less(t, time.Since(began), 1500*time.Millisecond)
	})
}

// However many slots there are, the bodies of what is recovered at once take no more
// memory than is set apart for them, and one saga always fits.
func TestRecovery_BoundsTheBodiesUnderWay(t *testing.T) {
	t.Parallel()
	for _, slots := range []int{1, 2, 15, 16, 17, 256, 10_000} {
		for _, body := range []int{0, 100, 1 << 20, store.MaxBodyBytes} {
			n := saga.AtOnce(slots, body)
			require.Positive(t, n)
			require.LessOrEqual(t, n, slots)
			require.LessOrEqual(t, n*body, 64<<20, "%d slots, %d bytes", slots, body)
			if body == 100 {
				require.Equal(t, slots, n)
			}
		}
	}
}

// Large sagas are claimed a few at a time, in calls that a server answers within its
// timeout.
func TestRecovery_OfManyLargeSagas_EndsThem(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	const sagas, size = 12, 2 << 20
	server := labtest.Start(t, lab.Redis, lab.Config{})
	slow := redisstore.DefaultConfig()
	slow.URL, slow.Timeout = server.URL(), 5*time.Second
	s, err := redisstore.Open(t.Context(), slow)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	for i := range sagas {
		create(t, s, fmt.Sprint("large-", i), bodyTo("healthy", strings.Repeat("x", size)), 1)
	}
	cfg := patient()
	cfg.Lease, cfg.RequestTimeout = 4*time.Second, 2*time.Second
	claims := 0
	c := start(t, &claimer{s, func(records []store.Record, _ int) {
		bytes := 0
		for _, r := range records {
			bytes += len(r.Body)
		}
		if bytes >= store.MaxPageBytes+store.MaxBodyBytes {
			t.Errorf("claimed %d bytes at once", bytes)
		}
		if len(records) > 0 {
			claims++
		}
	}}, &branches{}, cfg)
	until(t, "all have succeeded", func() bool { return c.Counters().Succeeded == sagas })
	kill(c)
	require.GreaterOrEqual(t, claims, sagas*size/(store.MaxPageBytes+store.MaxBodyBytes))
}

// After a claim that failed less is asked for, so that one that was too much gets
// through in the end, and few sagas are leased to nobody when its answer was lost.
func TestRecovery_AfterAFailedClaim_AsksForHalf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var limits []int
		model := memstore.New(time.Hour)
		way := &limited{Store: model, claim: func(limit int) error {
			mu.Lock()
			defer mu.Unlock()
			limits = append(limits, limit)
			if limit > 3 && len(limits) < 8 {
				return context.DeadlineExceeded
			}
			return nil
		}}
		cfg := unhurried()
		cfg.MaxRecovering = 16
		c := start(t, way, &branches{}, cfg)
		time.Sleep(10 * cfg.PollInterval)
		kill(c)
		require.Equal(t, []int{16, 8, 4, 2, 4, 2, 4, 2, 4, 8, 16}, limits[:min(11, len(limits))])
	})
}

// limited is a store that is asked before it claims.
type limited struct {
	store.Store
	claim func(limit int) error
}

func (l *limited) ClaimDue(ctx context.Context, owner string, lease time.Duration, limit int) ([]store.Record, error) {
	if err := l.claim(limit); err != nil {
		return nil, err
	}
	return l.Store.ClaimDue(ctx, owner, lease, limit)
}

// What no coordinator of this version can read is left alone for a while, in sight,
// and the others run.
func TestRecovery_UnreadableSaga_IsSetAside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model, log := memstore.New(time.Hour), new(testkit.Log)
		create(t, model, "alien", "<xml/>", 1)
		create(t, model, "steps", bodyTo("a", ""), 7)
		create(t, model, "good", bodyTo("a", ""), 1)
		cfg := unhurried()
		cfg.Lease, cfg.RequestTimeout = 10*time.Second, 3*time.Second
		cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
		c := start(t, model, &branches{}, cfg)
		require.Equal(t, store.StatusSucceeded, mustWait(t, c, "good").Status)
		time.Sleep(store.Quarantine / 2)
		for _, gid := range []string{"alien", "steps"} {
			record := mustGet(t, model, gid)
			require.EqualValues(t, 2, record.Epoch, "%s is claimed over and over", gid)
			require.Empty(t, record.Owner)
			require.Equal(t, store.StatusSubmitted, record.Status)
			require.Contains(t, log.String(), "gid="+gid)
		}
		time.Sleep(store.Quarantine)
		require.EqualValues(t, 3, mustGet(t, model, "alien").Epoch, "another try")
	})
}

// A saga whose record is spoilt while it runs is left, and whoever waits for it is
// told.
func TestRun_RecordSpoilt_IsLeft(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	s := redisOpener(t, server, time.Hour)()
	branches := blocking(store.Action(0))
	c := start(t, s, branches, patient())
	one := newSaga(2)
	require.NoError(t, c.Submit(t.Context(), one))
	<-branches.called
	options, err := redis.ParseURL(server.URL())
	require.NoError(t, err)
	client := redis.NewClient(options)
	defer client.Close()
	keys, err := client.Keys(t.Context(), "*:"+one.GID).Result()
	require.NoError(t, err)
	require.Len(t, keys, 1)
	require.NoError(t, client.Set(t.Context(), keys[0], "spoilt", 0).Err())
	close(branches.goOn)

	_, err = c.Wait(within(t, patience), one.GID)
	require.ErrorIs(t, err, store.ErrUnreadable)
	require.EqualValues(t, 1, settled(t, c).Lost)
	require.Equal(t, store.StatusSucceeded, mustRun(t, c, newSaga(2)).Status)
}
