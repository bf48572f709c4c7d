package pebblestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
)

const unknownKey = "not a key of this store"

// Verify implements store.Verifier: it compares what is on disk with what is in
// memory. All other calls wait for it.
func (s *Store) Verify(ctx context.Context) (findings []string, err error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.end(&err)
	defer s.mu.Unlock()
	add := func(format string, args ...any) { findings = append(findings, fmt.Sprintf(format, args...)) }

	for i, g := range s.due {
		if g.pos != i || s.sagas[g.gid] != g || s.due.Less(i, max(i-1, 0)/2) {
			add("%s: misplaced in the due index", g.gid)
		}
	}
	if len(s.due) != len(s.sagas) {
		add("the due index contains %d sagas of %d", len(s.due), len(s.sagas))
	}
	it, err := s.db.NewIter(nil)
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	unfinished := 0
	for valid := it.First(); valid; valid = it.Next() {
		value, err := it.ValueAndErr()
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, fmt.Errorf("verify: %w", err)
		}
		if it.Key()[0] == unfinishedKey {
			unfinished++
		}
		if wrong := s.verify(it.Key(), value); wrong != nil {
			add("key %q: %v", it.Key(), wrong)
		}
	}
	if unfinished != len(s.sagas) {
		add("%d unfinished sagas are on disk, %d in memory", unfinished, len(s.sagas))
	}
	return findings, it.Error()
}

// verify returns what is wrong with one key and its value, or nil.
func (s *Store) verify(key, value []byte) error {
	if len(key) < idKeyBytes {
		return errors.New(unknownKey)
	}
	switch id := numberIn(key); key[0] {
	case unfinishedKey:
		return s.verifyUnfinished(id, value)
	case finishedKey:
		return s.verifyFinished(id, value)
	case gidKey:
		return s.verifyIndex(int64(id), key[bucketKeyBytes:], value)
	case bodyKey:
		return s.verifyBody(id)
	default:
		return errors.New(unknownKey)
	}
}

func (s *Store) verifyUnfinished(id uint64, value []byte) error {
	gid, rec, err := splitEntry(value)
	if err != nil {
		return fmt.Errorf("%s: %w", gid, err)
	}
	g := s.sagas[string(gid)]
	switch {
	case g == nil || g.id != id:
		return fmt.Errorf("%s is unfinished, and not in the due index", gid)
	case !bytes.Equal(g.rec, rec):
		return fmt.Errorf("%s differs on disk and in memory", gid)
	case rec.status().Final() || rec.due() == 0:
		return fmt.Errorf("%s is unfinished, and %v, due %d", gid, rec.status(), rec.due())
	}
	if _, err := longBody(s.db, id, rec); err != nil {
		return fmt.Errorf("%s: %w", gid, err)
	}
	return nil
}

func (s *Store) verifyFinished(id uint64, value []byte) error {
	gid, rec, err := splitEntry(value)
	if err != nil {
		return fmt.Errorf("%s: %w", gid, err)
	}
	_, inline := rec.body()
	switch {
	case !rec.status().Final() || rec.due() != 0 || !inline:
		return fmt.Errorf("%s is finished, and %v, due %d, with its body: %t", gid, rec.status(), rec.due(), inline)
	case id < firstID(s.buckets[0].start):
		return fmt.Errorf("%s is older than the oldest bucket", gid)
	case s.expired(rec, s.now()):
		return nil
	case s.sagas[string(gid)] != nil:
		return fmt.Errorf("%s is finished and unfinished", gid)
	}
	l := lookup{s: s, now: s.now()}
	defer l.close()
	if indexed, found, err := l.find(s.bucketsOf(string(gid)), string(gid)); err != nil {
		return err
	} else if !found || !bytes.Equal(indexed, rec) {
		return fmt.Errorf("%s is finished, and not found by its gid", gid)
	}
	return nil
}

func (s *Store) verifyIndex(bucket int64, gid, value []byte) error {
	if len(value) != 8 {
		return fmt.Errorf("%s has an id of %d bytes", gid, len(value))
	}
	id := binary.BigEndian.Uint64(value)
	if bucket < s.buckets[0].start || id < firstID(bucket) {
		return fmt.Errorf("%s has id %d in bucket %d, the oldest is %d", gid, id, bucket, s.buckets[0].start)
	}
	_, closer, err := s.db.Get(appendID(nil, finishedKey, id))
	if err != nil {
		return fmt.Errorf("%s is in the index: %w", gid, err)
	}
	return closer.Close()
}

func (s *Store) verifyBody(id uint64) error {
	value, closer, err := s.db.Get(appendID(nil, unfinishedKey, id))
	if err != nil {
		return errors.New("a body without its unfinished saga")
	}
	defer func() { _ = closer.Close() }()
	if _, rec, err := splitEntry(value); err == nil {
		if _, inline := rec.body(); inline {
			return errors.New("a body that the record of its saga contains as well")
		}
	}
	return nil
}
