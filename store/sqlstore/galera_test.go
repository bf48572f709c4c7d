package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/galera"
	"sagabench/store"
	"sagabench/store/storetest"
)

// shared is a cluster for all tests that leave it as it is. Its nodes suspect nobody, also
// on a busy machine.
var shared struct {
	once    sync.Once
	cluster *galera.Cluster
	err     error
}

func sharedGalera(t *testing.T) *galera.Cluster {
	t.Helper()
	shared.once.Do(func() {
		shared.cluster, shared.err = galera.Start(context.Background(), galera.Config{Nodes: 3, SuspectTimeout: time.Minute, Node: lab.Config{
			Settings: map[string]string{"innodb_flush_method": "nosync"},
		}})
	})
	require.NoError(t, shared.err)
	return shared.cluster
}

// spread is a store of which each call goes to another node of a cluster.
type spread struct {
	stores []*Store
	calls  atomic.Uint64
}

func openSpread(t testing.TB, cluster *galera.Cluster, cfg Config) *spread {
	t.Helper()
	s := &spread{}
	for _, node := range cluster.Nodes() {
		cfg.URL = node.URL()
		s.stores = append(s.stores, openOnly(t, cfg))
	}
	return s
}

func (s *spread) next() *Store { return s.stores[s.calls.Add(1)%uint64(len(s.stores))] }

func (s *spread) Apply(ctx context.Context, changes []store.Change) []error {
	return s.next().Apply(ctx, changes)
}

func (s *spread) Get(ctx context.Context, gid string) (store.Record, error) {
	return s.next().Get(ctx, gid)
}

func (s *spread) List(ctx context.Context, query store.Query) (store.Page, error) {
	return s.next().List(ctx, query)
}

func (s *spread) ClaimDue(ctx context.Context, owner string, lease time.Duration, limit int) ([]store.Record, error) {
	return s.next().ClaimDue(ctx, owner, lease, limit)
}

func (s *spread) Stats(ctx context.Context) (store.Stats, error) { return s.next().Stats(ctx) }

func (s *spread) Settings(ctx context.Context) (store.Settings, error) { return s.next().Settings(ctx) }

func (s *spread) Verify(ctx context.Context) ([]string, error) { return s.next().Verify(ctx) }

func (s *spread) Retention() time.Duration { return s.stores[0].Retention() }

func (s *spread) Close() error {
	var errs []error
	for _, each := range s.stores {
		errs = append(errs, each.Close())
	}
	return errors.Join(errs...)
}

func TestStore_Galera(t *testing.T) {
	t.Parallel()
	cluster := sharedGalera(t)
	h := storetest.Harness{
		Open: func(t testing.TB, opts storetest.Options) store.Store {
			cfg := configOf(cluster.Nodes()[0])
			cfg.Retention = opts.Retention
			return openSpread(t, cluster, cfg)
		},
		Reopen: func(t testing.TB, s store.Store) store.Store {
			require.NoError(t, s.Close())
			return openSpread(t, cluster, s.(*spread).stores[0].cfg)
		},
	}
	storetest.Run(t, h)
	t.Run("Model", func(t *testing.T) {
		t.Parallel()
		storetest.RunModel(t, h)
	})
}

// Locks of one node are unknown to the others: SKIP LOCKED skips nothing. Two claims of
// the same sagas exclude each other when they commit.
func TestClaimDue_OnThreeNodes_IsDisjoint(t *testing.T) {
	t.Parallel()
	cluster := sharedGalera(t)
	const sagas = 300
	s := openSpread(t, cluster, configOf(cluster.Nodes()[0]))
	defer s.Close()
	var creates []store.Change
	for n := range sagas {
		creates = append(creates, create(n))
	}
	requireApplied(t, s, creates...)
	before := conflicts(t, cluster)
	var mu sync.Mutex
	owners := map[string]string{}
	var running sync.WaitGroup
	for node, each := range s.stores {
		for w := range 2 {
			owner := fmt.Sprint("node", node, "w", w)
			running.Go(func() {
				for {
					records, err := each.ClaimDue(t.Context(), owner, time.Hour, 10)
					mu.Lock()
					if err != nil {
						t.Errorf("%s: %v", owner, err)
					}
					for _, r := range records {
						if other := owners[r.GID]; other != "" || r.Epoch != 2 || r.Owner != owner {
							t.Errorf("%s claimed %s at epoch %d for %s; claimed by %q before", owner, r.GID, r.Epoch, r.Owner, other)
						}
						owners[r.GID] = owner
					}
					done := len(owners) == sagas || t.Failed()
					mu.Unlock()
					if done {
						return
					}
				}
			})
		}
	}
	running.Wait()
	require.Len(t, owners, sagas)
	for gid, owner := range owners {
		r, err := s.Get(t.Context(), gid)
		require.NoError(t, err)
		require.Equal(t, owner, r.Owner)
	}
	require.Greater(t, conflicts(t, cluster), before, "they never met")
	requireVerified(t, s)
}

// conflicts returns how many transactions lost to one of another node.
func conflicts(t *testing.T, cluster *galera.Cluster) (n int) {
	t.Helper()
	for i := range cluster.Nodes() {
		status, err := cluster.Status(t.Context(), i)
		require.NoError(t, err)
		for _, name := range []string{"wsrep_local_cert_failures", "wsrep_local_bf_aborts"} {
			some, err := strconv.Atoi(status[name])
			require.NoError(t, err, name)
			n += some
		}
	}
	return n
}

// Four workers take the same sagas to their ends over all nodes, and claim others.
func TestApply_OnThreeNodes_LosesNoUpdate(t *testing.T) {
	t.Parallel()
	cluster := sharedGalera(t)
	before := conflicts(t, cluster)
	s := openSpread(t, cluster, configOf(cluster.Nodes()[0]))
	defer s.Close()
	l := newLoad(t, s)
	l.sure.Store(true)
	l.runBeside(func(stop <-chan struct{}) {
		for l.rounds.Load() < 20 {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	l.requireSound()
	require.Empty(t, l.doubts)
	require.Greater(t, conflicts(t, cluster), before, "they never met")
}

// Processes that start on different nodes make the same schema.
func TestOpen_OnAllNodesAtOnce_MakesOneSchema(t *testing.T) {
	t.Parallel()
	cluster := sharedGalera(t)
	for range 2 {
		cfg := configOf(cluster.Nodes()[0])
		var opening sync.WaitGroup
		stores := make([]*Store, 2*len(cluster.Nodes()))
		errs := make([]error, len(stores))
		for i := range stores {
			cfg := cfg
			cfg.URL = cluster.Nodes()[i%len(cluster.Nodes())].URL()
			opening.Go(func() { stores[i], errs[i] = Open(t.Context(), cfg) })
		}
		opening.Wait()
		for i, s := range stores {
			require.NoError(t, errs[i])
			requireApplied(t, s, create(i))
			require.EqualValues(t, i+1, s.number(t, "SELECT COUNT(*) FROM saga"))
			require.EqualValues(t, 2, s.number(t, "SELECT COUNT(*) FROM saga_migration"))
		}
		cfg.MustExist = true
		cfg.URL = cluster.Nodes()[1].URL()
		open(t, cfg)
		for _, s := range stores {
			require.NoError(t, s.Close())
		}
	}
}

func TestSettings_OfANodeOfGalera(t *testing.T) {
	t.Parallel()
	cluster := sharedGalera(t)
	s := open(t, configOf(cluster.Nodes()[1]))
	settings, err := s.Settings(t.Context())
	require.NoError(t, err)
	require.Equal(t, "3", settings.Values["wsrep_cluster_size"])
	require.NotEmpty(t, settings.Values["wsrep_provider_version"])
}
