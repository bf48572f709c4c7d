package session

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"

	"sagabench/bench/internal/audit"
	"sagabench/bench/internal/backend"
	"sagabench/bench/internal/result"
	"sagabench/bench/internal/sample"
	"sagabench/bench/internal/validity"
	"sagabench/internal/filesystem"
	"sagabench/store"
)

// inspectStore opens the store, counts its sagas and reads its settings. A place of the
// session's own is removed again, so it fails early if the user lacks the right to do so.
func (s *Session) inspectStore(ctx context.Context) (err error) {
	if s.site.store == nil {
		return nil
	}
	st, err := s.site.store.Open(ctx)
	if err != nil {
		if ctx.Err() != nil { // it may have made a part of its place
			s.removePlace(ctx)
		}
		return err
	}
	defer st.Close()
	defer func() { err = errors.Join(err, s.drop(ctx, st)) }()
	cluster, err := backend.ClusterOf(ctx, s.storeServer())
	if err != nil {
		return err
	}
	s.site.add(cluster)
	if s.before, err = s.settings(ctx, st); err != nil {
		return err
	}
	if p, ok := st.(store.Partitioned); ok {
		s.partitions = p.Partitions()
	}
	if has := s.before.Durability; s.cfg.Durability != "" && has.String() != s.cfg.Durability {
		return fmt.Errorf("durability: the store has %s (%s), not %s: check its other settings: %v", has, has.Meaning(), s.cfg.Durability, s.before.Values)
	}
	return store.Walk(ctx, st, store.Query{Limit: 1000}, func(store.Record) { s.leftovers++ })
}

// settings returns those of the store's engine, with the file system of its files.
func (s *Session) settings(ctx context.Context, st store.Store) (store.Settings, error) {
	settings, err := st.Settings(ctx)
	if err == nil && s.site.clusterReplicas > 0 {
		settings.Values[result.KeyReplicas] = strconv.Itoa(s.site.clusterReplicas)
	}
	if err != nil || s.site.storeDir == "" {
		return settings, err
	}
	if len(s.site.replicas) > 0 {
		settings.Values[result.KeyReplica] = "started with the server"
	}
	disk := filesystem.Of(s.site.storeDir)
	return settings.WithFileSystem(disk, filesystem.InMemory(disk)), nil
}

// filesDir returns the directory of the store's files on this machine; empty if it is
// unknown.
func (s *Session) filesDir() string {
	if s.site.store != nil && s.site.store.Embedded() {
		return s.site.store.Config.Pebble.Dir
	}
	return s.site.storeDir
}

func (s *Session) storeSummary(settings store.Settings) result.Store {
	if s.site.store == nil {
		return result.Store{Settings: map[string]string{}}
	}
	described := StoreOf(settings)
	described.RetentionS = s.site.retentionS
	return described
}

// StoreOf returns what a result says of a store with these settings, without its retention.
func StoreOf(settings store.Settings) result.Store {
	return result.Store{
		Driver: settings.Driver, Version: settings.Version,
		Settings: settings.Values, Durability: settings.Durability.String(),
	}
}

// sampleConfig returns all but the app servers.
func (s *Session) sampleConfig() sample.Config {
	cfg := sample.Default()
	cfg.AppToken, cfg.Watch = s.cfg.Token, s.cfg.Watch
	if s.disk != nil {
		cfg.StoreDevice = s.disk.Device
	}
	if s.site.store != nil {
		cfg.OpenStore = backend.Sampler(s.storeServer())
	}
	return cfg
}

// storeServer describes the store's server. The store must be known.
func (s *Session) storeServer() backend.Server {
	store := s.site.store
	return backend.Server{Driver: store.Driver, URL: store.URL(), Local: local(store.URL()), PIDs: s.site.storePIDs, Replicas: s.site.replicas, Schema: store.Schema()}
}

// audit compares the store with the journals, and removes a place of the session's own.
func (s *Session) audit(ctx context.Context, summary *result.Summary, e *validity.Evidence) {
	if s.site.store == nil {
		return
	}
	s.cfg.status("auditing the store")
	if err := s.tryAudit(ctx, summary, e); err != nil {
		e.Failures = append(e.Failures, fmt.Sprintf("the audit: %v", err))
	}
}

func (s *Session) tryAudit(ctx context.Context, summary *result.Summary, e *validity.Evidence) (err error) {
	st, err := s.site.store.Open(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	defer func() { err = errors.Join(err, s.drop(ctx, st)) }()
	settings, err := s.settings(ctx, st)
	if err != nil {
		return err
	}
	after := s.storeSummary(settings)
	e.After = &after
	found, err := audit.Journals(ctx, st, s.site.store.Config.Retention, s.journals...)
	if err != nil {
		return err
	}
	summary.Check = found.Check
	summary.Check.LostWrites = s.lostWrites
	stored := found.Sagas - s.leftovers
	leftovers := s.leftovers - s.site.preloaded
	e.StoreSagas, e.Leftovers = &stored, &leftovers
	e.Findings = found.Findings
	return nil
}

// drop removes the prefix or schema that was made for the session, even if ctx has ended.
func (s *Session) drop(ctx context.Context, st store.Store) error {
	if !s.site.ownPlace {
		return nil
	}
	if st, ok := st.(store.Dropper); ok {
		if err := st.Drop(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("remove what was made for the run: %w", err)
		}
	}
	return nil
}

// removePlace is drop for a store that is not open.
func (s *Session) removePlace(ctx context.Context) {
	if !s.site.ownPlace {
		return
	}
	ctx = context.WithoutCancel(ctx)
	if st, err := s.site.store.Open(ctx); err == nil {
		_ = s.drop(ctx, st)
		st.Close()
	}
}

func (s *Session) removeTemporary() {
	if s.site.temporary != "" {
		os.RemoveAll(s.site.temporary)
	}
}

// local reports whether a URL's host is this machine.
func local(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && backend.Local(u.Hostname())
}
