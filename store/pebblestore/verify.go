package pebblestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
)

// Verify implements store.Verifier: it compares what is on disk with what is
// in memory. All other calls wait for it.
func (s *Store) Verify(ctx context.Context) (findings []string, err error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.calls.Done()
	defer s.log.rescue(&err)
	defer s.mu.Unlock()

	for i, g := range s.due {
		if g.pos != i || s.sagas[g.gid] != g || s.due.Less(i, max(i-1, 0)/2) {
			findings = append(findings, fmt.Sprintf("%s: misplaced in the due index", g.gid))
		}
	}
	if len(s.due) != len(s.sagas) {
		findings = append(findings, fmt.Sprintf("the due index holds %d sagas of %d", len(s.due), len(s.sagas)))
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
		if wrong := s.verify(it.Key(), value); wrong != "" {
			findings = append(findings, fmt.Sprintf("key %q: %s", it.Key(), wrong))
		}
	}
	if unfinished != len(s.sagas) {
		findings = append(findings, fmt.Sprintf("%d unfinished sagas are on disk, %d in memory", unfinished, len(s.sagas)))
	}
	return findings, it.Error()
}

// verify says what is wrong with one key and its value, if anything is.
func (s *Store) verify(key, value []byte) string {
	if len(key) < idKeyBytes {
		return "not a key of ours"
	}
	switch key[0] {
	case unfinishedKey:
		return s.verifyUnfinished(numberIn(key), value)
	case finishedKey:
		return s.verifyFinished(numberIn(key), value)
	case gidKey:
		return s.verifyGID(int64(numberIn(key)), string(key[bucketKeyBytes:]), value)
	case bodyKey:
		return s.verifyBody(numberIn(key))
	default:
		return "not a key of ours"
	}
}

func (s *Store) verifyUnfinished(id uint64, value []byte) string {
	gid, rec, err := splitEntry(value)
	if err != nil {
		return fmt.Sprintf("%s: %v", gid, err)
	}
	g := s.sagas[string(gid)]
	switch {
	case g == nil || g.id != id:
		return fmt.Sprintf("%s is unfinished, and not in the due index", gid)
	case !bytes.Equal(g.rec, rec):
		return fmt.Sprintf("%s is not the same on disk and in memory", gid)
	case rec.status().Final() || rec.due() == 0:
		return fmt.Sprintf("%s is unfinished, and %v, due %d", gid, rec.status(), rec.due())
	}
	if _, err := s.longBody(g); err != nil {
		return fmt.Sprintf("%s: %v", gid, err)
	}
	return ""
}

func (s *Store) verifyFinished(id uint64, value []byte) string {
	gid, rec, err := splitEntry(value)
	if err != nil {
		return fmt.Sprintf("%s: %v", gid, err)
	}
	_, inline := rec.body()
	switch {
	case !rec.status().Final() || rec.due() != 0 || !inline:
		return fmt.Sprintf("%s is finished, and %v, due %d, with its body: %t", gid, rec.status(), rec.due(), inline)
	case id < firstID(s.buckets[0].start):
		return fmt.Sprintf("%s is older than the oldest bucket", gid)
	case s.expired(rec, s.now()):
		return ""
	case s.sagas[string(gid)] != nil:
		return fmt.Sprintf("%s is finished and unfinished", gid)
	}
	l := lookup{s: s}
	defer l.close()
	if indexed, found, err := l.find(s.mayHold(string(gid)), string(gid), s.now()); err != nil {
		return err.Error()
	} else if !found || !bytes.Equal(indexed, rec) {
		return fmt.Sprintf("%s is finished, and not found by its gid", gid)
	}
	return ""
}

func (s *Store) verifyGID(bucket int64, gid string, value []byte) string {
	if len(value) != 8 {
		return fmt.Sprintf("%s has an id of %d bytes", gid, len(value))
	}
	id := binary.BigEndian.Uint64(value)
	if bucket < s.buckets[0].start || id < firstID(bucket) {
		return fmt.Sprintf("%s has id %d in bucket %d, the oldest is %d", gid, id, bucket, s.buckets[0].start)
	}
	_, closer, err := s.db.Get(appendID(nil, finishedKey, id))
	if err != nil {
		return fmt.Sprintf("%s is in the index: %v", gid, err)
	}
	_ = closer.Close()
	return ""
}

func (s *Store) verifyBody(id uint64) string {
	value, closer, err := s.db.Get(appendID(nil, unfinishedKey, id))
	if err != nil {
		return "a body without its unfinished saga"
	}
	defer func() { _ = closer.Close() }()
	if _, rec, err := splitEntry(value); err == nil {
		if _, inline := rec.body(); inline {
			return "a body that its saga has already"
		}
	}
	return ""
}
