package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sagabench/store"
)

// A host vanishes in the middle of a call, at each of its messages: what it has
// locked is free again within the session bound, so others can claim its sagas.
// What is left of the host, were it only cut off, notices within the time of a
// call.
func TestCalls_WhoseHostVanishes_FreeTheirLocks(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		claim := func(s *Store) error {
			_, err := s.ClaimDue(context.Background(), "gone", time.Minute, vanishedSagas)
			return err
		}
		apply := func(s *Store) error { // marks, one of which is refused
			for _, err := range s.Apply(context.Background(), []store.Change{mark(1), mark(2), mark(vanishedSagas)}) {
				if err != nil && !isRefusal(err) {
					return err
				}
			}
			return nil
		}
		var running sync.WaitGroup // together: each of them mostly waits
		for name, call := range map[string]func(*Store) error{"claim": claim, "apply": apply} {
			for message := range 7 {
				v := k.newVanishing(t)
				running.Go(func() {
					vanished, err := v.run(call, 1+message)
					if assert.NoError(t, err, "%s, at message %d", name, 1+message) && message < 4 {
						assert.True(t, vanished, "%s has fewer messages than %d", name, 1+message)
					}
				})
			}
		}
		running.Wait()
	})
}

const vanishedSagas = 10

// vanishing is a host that is to vanish, and another.
type vanishing struct {
	p        *proxy
	s, other *Store
}

func (k *kind) newVanishing(t *testing.T) *vanishing {
	t.Helper()
	v := &vanishing{p: newProxy(t, k.server.Addr())}
	cfg := k.config()
	cfg.Timeout, cfg.Conns, cfg.Lease = 3*time.Second, 2, 2*time.Second
	v.s, v.other = open(t, v.p.of(cfg)), open(t, cfg)
	for _, s := range []*Store{v.s, v.other} { // its messages would count
		s.stopSweeping()
		s.sweeping.Wait()
	}
	return v
}

// run has the host vanish at a message of a call, if it has so many.
func (v *vanishing) run(call func(*Store) error, message int) (vanished bool, err error) {
	if err := call(v.s); err != nil { // which prepares statements
		return false, err
	}
	var creates []store.Change
	for n := range vanishedSagas {
		c := create(n)
		c.Due = -time.Second
		creates = append(creates, c)
	}
	if err := errors.Join(v.other.Apply(context.Background(), creates)...); err != nil {
		return false, err
	}
	v.p.VanishAt(message)
	began := time.Now()
	err = call(v.s)
	switch took := time.Since(began); {
	case !v.p.Vanished():
		return false, err
	case err == nil || isRefusal(err) || took > patience:
		return true, fmt.Errorf("after %v the host was told: %w", took, err)
	}
	limit := began.Add(patience)
	free := map[string]bool{}
	for len(free) < vanishedSagas {
		claimed, err := v.other.ClaimDue(context.Background(), "other", time.Minute, vanishedSagas)
		if err != nil {
			return true, err
		}
		for _, r := range claimed {
			free[r.GID] = true
		}
		if time.Now().After(limit) {
			return true, fmt.Errorf("after %v only %v are free", time.Since(began), free)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return true, nil
}

// A host vanishes while the server is sending to it, more than there is room for
// on the way.
func TestCalls_WhoseHostVanishesAsItReads_FreeTheirLocks(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		p := newProxy(t, k.server.Addr())
		cfg := k.config()
		cfg.Lease = 2 * time.Second
		s, other := open(t, p.of(cfg)), open(t, cfg)
		var creates []store.Change
		for n := range 40 {
			creates = append(creates, create(n))
		}
		requireApplied(t, s, creates...)
		tx := s.begin(t)
		rows, err := tx.Query("SELECT REPEAT('x', 2000000) FROM saga FOR UPDATE")
		require.NoError(t, err)
		defer func() {
			p.CutAll() // or each would wait for an answer
			rows.Close()
			tx.Rollback()
		}()
		require.True(t, other.isLocked(t, gid(0)))
		defer p.Stall()()
		require.Eventually(t, func() bool { return !other.isLocked(t, gid(0)) }, patience, 50*time.Millisecond)
	})
}

// Connections that nobody has used for some time still work: the store closes them
// before the server does.
func TestCalls_AfterAPause_Work(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		cfg := k.config()
		cfg.Lease = 2 * time.Second
		s := open(t, cfg)
		s.stopSweeping()
		s.sweeping.Wait()
		require.Zero(t, s.lostConns(t)) // all are open
		if k.name == "mysql" {
			require.Eventually(t, func() bool { return s.db.Stats().MaxIdleTimeClosed == int64(cfg.Conns) }, patience, 10*time.Millisecond)
		}
		require.Zero(t, s.lostConns(t))
	})
}
