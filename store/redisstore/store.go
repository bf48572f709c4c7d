package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"sagabench/store"
)

// Config selects the server and a place on it.
type Config struct {
	// URL is redis://[user:password@]host:port[/db], or rediss:// for TLS. With TLS,
	// ?sslrootcert= is a file with the authority of the server's certificate; sslcert
	// and sslkey are files with the client's certificate and key.
	URL       string
	Prefix    string        // of every key; 1 to 32 of A-Z a-z 0-9 _ -
	Shards    int           // due indexes, 1 to MaxShards, fixed by the first use of Prefix; 0: as before, or one per server
	Retention time.Duration // how long finished sagas are kept; 0: not at all
	Timeout   time.Duration // for connecting, and for the reply to a call
	Conns     int           // limit of connections
	Replicas  int           // how many must have received what is acknowledged, or returned; 0: none
	MustExist bool          // Open fails with store.ErrAbsent if Prefix was never used
}

// MaxShards limits Config.Shards.
const MaxShards = 1024

// DefaultConfig returns the settings for a server on this machine at the usual port.
func DefaultConfig() Config {
	return Config{
		URL:       "redis://127.0.0.1:6379",
		Prefix:    "saga",
		Retention: time.Hour,
		Timeout:   3 * time.Second,
		Conns:     16,
	}
}

// Store implements store.Store.
type Store struct {
	nodes      *nodes
	cfg        Config
	address    string   // for messages: without the password
	indexes    []string // the keys of the due indexes, by shard
	slots      []int    // their slots
	partitions []int    // the partitions of the shards
	roundTrips atomic.Int64
	claims     claims

	calls  sync.RWMutex // held for reading by every call, for writing by Close
	closed bool
}

var (
	_ store.Store          = (*Store)(nil)
	_ store.Dropper        = (*Store)(nil)
	_ store.Verifier       = (*Store)(nil)
	_ store.CounterSource  = (*Store)(nil)
	_ store.ConnectionPool = (*Store)(nil)
	_ store.Partitioned    = (*Store)(nil)
)

var validPrefix = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// Open connects and loads the scripts. It returns store.ErrUnsafe if the server may
// evict keys, or if the prefix has another number of shards.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	switch {
	case !validPrefix.MatchString(cfg.Prefix):
		return nil, fmt.Errorf("redis: %w: prefix: %q, want 1 to 32 of A-Z a-z 0-9 _ -", store.ErrInvalid, cfg.Prefix)
	case cfg.Shards < 0 || cfg.Shards > MaxShards:
		return nil, fmt.Errorf("redis: %w: shards: %d, must be 0 to %d", store.ErrInvalid, cfg.Shards, MaxShards)
	case cfg.Retention < 0:
		return nil, fmt.Errorf("redis: %w: retention: %v, at least 0", store.ErrInvalid, cfg.Retention)
	case cfg.Timeout <= 0:
		return nil, fmt.Errorf("redis: %w: timeout: %v, must be more than 0", store.ErrInvalid, cfg.Timeout)
	case cfg.Conns < 1:
		return nil, fmt.Errorf("redis: %w: conns: %d, at least 1", store.ErrInvalid, cfg.Conns)
	case cfg.Replicas < 0:
		return nil, fmt.Errorf("redis: %w: replicas: %d, at least 0", store.ErrInvalid, cfg.Replicas)
	}
	servers, err := connect(cfg)
	if err != nil {
		return nil, err
	}
	s := &Store{nodes: servers, cfg: cfg, address: servers.seeds[0].address}
	s.claims.late = make(map[*node]dueAnswer)
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("redis at %s: %w", s.address, err), s.nodes.close())
	}
	return s, nil
}

func (s *Store) prepare(ctx context.Context) error {
	info, err := s.nodes.discover(ctx)
	if err != nil {
		return err
	}
	if s.nodes.only != nil && info["role"] == "slave" {
		return fmt.Errorf("%w: it is a replica of %s:%s, and does not take writes: give that one", store.ErrUnsafe, info["master_host"], info["master_port"])
	}
	all := s.nodes.all()
	answered, err := s.loadAllScripts(ctx, all)
	if err == nil && s.nodes.only == nil && s.leaveCutOff(ctx, answered) {
		all = s.nodes.all()
		answered, err = s.loadAllScripts(ctx, all)
	}
	if err != nil {
		return err
	}
	if s.cfg.Shards, err = s.recordLayout(ctx, min(len(all), MaxShards)); err != nil {
		return err
	}
	for _, tag := range shardTags(s.cfg.Shards) {
		index := s.cfg.Prefix + ":{" + tag + "}"
		s.indexes = append(s.indexes, index)
		s.slots = append(s.slots, slotOf(index))
		s.partitions = append(s.partitions, max(0, slices.Index(all, s.nodes.owner(slotOf(index)))))
	}
	shards := s.shardsByServer()
	for _, server := range answered {
		if err := s.addBallast(ctx, shards[server]); err != nil {
			return err
		}
	}
	return nil
}

// leaveCutOff reports whether one of the servers of a cluster is cut off from the others. It
// still takes itself for a master, so leaveCutOff asks the others who holds the slots.
func (s *Store) leaveCutOff(ctx context.Context, servers []*node) bool {
	for _, server := range servers {
		if err := server.StrLen(ctx, s.layoutKey()).Err(); redis.IsClusterDownError(err) { // others answer, or redirect
			_ = s.nodes.refresh(ctx, server) // if all are down, the next call says so
			return true
		}
	}
	return false
}

// layout is the format of the key that records how a prefix is laid out. Version 1 had
// other hash tags, but for one shard.
const layout = "%d shards=%d"

func formatLayout(shards int) string {
	version := 2
	if shards == 1 {
		version = 1
	}
	return fmt.Sprintf(layout, version, shards)
}

// recordLayout returns the recorded number of shards of the prefix. If there is none, it
// records Config.Shards first, or else these.
func (s *Store) recordLayout(ctx context.Context, shards int) (int, error) {
	wanted := formatLayout(cmp.Or(s.cfg.Shards, shards))
	recorded, err := s.readLayout(ctx, wanted, false) // before any write: a server without the replicas keeps nothing
	if errors.Is(err, redis.Nil) && !s.cfg.MustExist {
		recorded, err = s.readLayout(ctx, wanted, true)
	}
	switch {
	case errors.Is(err, redis.Nil):
		return 0, fmt.Errorf("%w: prefix %q was never used", store.ErrAbsent, s.cfg.Prefix)
	case errors.Is(err, errReplicas):
		return 0, fmt.Errorf("replicas: %d: %w", s.cfg.Replicas, err)
	case err != nil:
		return 0, fmt.Errorf("reading %s: %w", s.layoutKey(), err)
	}
	var version int
	if _, err := fmt.Sscanf(recorded, layout, &version, &shards); err != nil || shards < 1 || shards > MaxShards || recorded != formatLayout(shards) {
		return 0, fmt.Errorf("%w: prefix %q holds sagas laid out as %q, not %q: use another prefix", store.ErrUnsafe, s.cfg.Prefix, recorded, wanted)
	}
	if s.cfg.Shards != 0 && s.cfg.Shards != shards {
		return 0, fmt.Errorf("%w: shards: prefix %q has %d, not %d: leave it at 0, or use another prefix", store.ErrUnsafe, s.cfg.Prefix, shards, s.cfg.Shards)
	}
	return shards, nil
}

// readLayout reads the layout. If there is none and write is set, it writes the wanted one
// first.
func (s *Store) readLayout(ctx context.Context, wanted string, write bool) (string, error) {
	var recorded *redis.StringCmd
	r := &request{slot: slotOf(s.layoutKey()), queue: func(pipe redis.Pipeliner) {
		if write {
			pipe.SetNX(ctx, s.layoutKey(), wanted, 0)
		}
		recorded = pipe.Get(ctx, s.layoutKey())
	}}
	if s.send(ctx, r); r.err != nil {
		return "", r.err
	}
	return recorded.Result()
}

// Close implements store.Store.
func (s *Store) Close() error {
	s.calls.Lock()
	defer s.calls.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.nodes.close()
}

// Counters implements store.CounterSource. What the server does is not counted here.
func (s *Store) Counters() store.Counters {
	return store.Counters{RoundTrips: s.roundTrips.Load(), Fsyncs: -1, Written: -1, Debt: -1}
}

// Connections implements store.ConnectionPool.
func (s *Store) Connections() (limit int, waited time.Duration) {
	for _, server := range s.nodes.all() {
		limit += s.cfg.Conns
		waited += time.Duration(server.PoolStats().WaitDurationNs)
	}
	return limit, waited
}

// Partitions implements store.Partitioned. A partition is the shards that one server held
// when the store was opened. Shards that move to another server stay in their partition:
// group commit keeps the changes of a saga in order in one queue per partition. So after
// masters were added, sagas wait for two servers until the store is opened again.
func (s *Store) Partitions() int { return 1 + slices.Max(s.partitions) }

// PartitionOf implements store.Partitioned.
func (s *Store) PartitionOf(gid string) int { return s.partitions[s.shard(gid)] }

// call runs f as one call of the store. An error of f comes back with the server's
// address and what the call was doing.
func (s *Store) call(ctx context.Context, doing string, f func() error) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.calls.RUnlock()
	if err := f(); err != nil {
		return s.wrapError(ctx, doing, err)
	}
	return nil
}

// begin starts a call. It ends with calls.RUnlock.
func (s *Store) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.calls.RLock()
	if s.closed {
		s.calls.RUnlock()
		return store.ErrClosed
	}
	return nil
}

// wrapError adds the server, the operation, and the end of the context to an error of
// the client.
func (s *Store) wrapError(ctx context.Context, doing string, err error) error {
	ended := ctx.Err()
	// A connection's deadline, set from the context's, may pass a moment earlier.
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		ended = context.DeadlineExceeded
	}
	switch {
	case ended != nil:
		return fmt.Errorf("redis at %s: %s: %w: %w", s.address, doing, ended, err)
	case redis.HasErrorPrefix(err, "OOM"):
		return fmt.Errorf("redis at %s: %s: the server is out of memory (maxmemory), nothing was written: %w", s.address, doing, err)
	default:
		return fmt.Errorf("redis at %s: %s: %w", s.address, doing, err)
	}
}

func (s *Store) layoutKey() string { return s.cfg.Prefix + ":layout" }

// indexKey returns the key of a shard's due index.
func (s *Store) indexKey(shard int) string { return s.indexes[shard] }

// sagaKey returns the key of a saga, and sagaGID the gid of a key.
func (s *Store) sagaKey(gid string) string { return s.indexKey(s.shard(gid)) + ":" + gid }

func sagaGID(key string) string { return key[strings.LastIndexByte(key, ':')+1:] }

// shard returns the shard of a gid: its FNV-1a hash of 32 bits, modulo the shards.
func (s *Store) shard(gid string) int {
	hash := uint32(2166136261)
	for i := range len(gid) {
		hash = (hash ^ uint32(gid[i])) * 16777619
	}
	return int(hash % uint32(s.cfg.Shards))
}
