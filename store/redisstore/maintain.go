package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"sagabench/lua"
	"sagabench/store"
)

// scanKeys is the number of keys that walk requests at a time.
const scanKeys = 1000

// Drop implements store.Dropper. It deletes the sagas, due indexes and layout of the
// prefix.
func (s *Store) Drop(ctx context.Context) error {
	return s.call(ctx, "drop", func() error {
		err := s.walk(ctx, s.cfg.Prefix+":{*}*", func(keys []string) error {
			return s.each(ctx, keys, func(pipe redis.Pipeliner, i int) { pipe.Unlink(ctx, keys[i]) })
		})
		if err != nil {
			return err
		}
		layout := &request{slot: slotOf(s.layoutKey()), queue: func(pipe redis.Pipeliner) { pipe.Unlink(ctx, s.layoutKey()) }}
		s.send(ctx, layout)
		return layout.err
	})
}

// Verify implements store.Verifier.
func (s *Store) Verify(ctx context.Context) (findings []string, err error) {
	err = s.call(ctx, "verify", func() error {
		unfinished := make(map[string]bool)
		err := s.walk(ctx, s.cfg.Prefix+":{*}:*", func(keys []string) error {
			found, err := s.verifySagas(ctx, keys, unfinished)
			findings = append(findings, found...)
			return err
		})
		if err != nil {
			return err
		}
		indexes := make([]*redis.StringSliceCmd, s.cfg.Shards)
		err = s.eachShard(ctx, s.allShards(), func(pipe redis.Pipeliner, i int) { indexes[i] = pipe.ZRange(ctx, s.indexKey(i), 0, -1) })
		if err != nil {
			return err
		}
		for _, index := range indexes {
			for _, key := range index.Val() {
				if !unfinished[key] && key != lua.Ballast {
					findings = append(findings, key+": in the due index, and not an unfinished saga of its shard")
				}
			}
		}
		return nil
	})
	return findings, err
}

func (s *Store) verifySagas(ctx context.Context, keys []string, unfinished map[string]bool) (findings []string, err error) {
	read, err := s.fetch(ctx, keys)
	if err != nil {
		return nil, err
	}
	var records []store.Record
	for i, r := range read {
		switch {
		case r.err != nil:
			findings = append(findings, fmt.Sprintf("%s: %v", keys[i], r.err))
			unfinished[keys[i]] = true // as far as is known
		case r.GID != "":
			records = append(records, r.Record)
		}
	}
	present := make([]string, len(records))
	for i, r := range records {
		present[i] = s.sagaKey(r.GID)
	}
	ttls := make([]*redis.DurationCmd, len(records))
	err = s.each(ctx, present, func(pipe redis.Pipeliner, i int) { ttls[i] = pipe.PTTL(ctx, present[i]) })
	if err != nil {
		return nil, err
	}
	for i, r := range records {
		key := present[i]
		expires, gone := ttls[i].Val() >= 0, ttls[i].Val() == -2
		add := func(what string) { findings = append(findings, key+": "+what) }
		switch {
		case gone: // its retention passed between the two reads
		case r.Status.Final() && !expires:
			add("ended, and would be kept for ever")
		case r.Status.Final() && !r.Due.IsZero():
			add("ended, and still in the due index")
		case !r.Status.Final() && expires:
			add(fmt.Sprintf("unfinished, and expires in %v", ttls[i].Val().Round(time.Second)))
		case !r.Status.Final() && r.Due.IsZero():
			add("unfinished, and not in the due index")
		}
		if !r.Status.Final() {
			unfinished[key] = true
		}
	}
	return findings, nil
}

// walk calls visit with the keys that match pattern, a page at a time.
func (s *Store) walk(ctx context.Context, pattern string, visit func(keys []string) error) error {
	for _, server := range s.nodes.all() {
		for cursor, more := uint64(0), true; more; more = cursor != 0 {
			keys, next, err := server.Scan(ctx, cursor, pattern, scanKeys).Result()
			if err != nil {
				return err
			}
			if len(keys) > 0 {
				if err := visit(keys); err != nil {
					return err
				}
			}
			cursor = next
		}
	}
	return nil
}
