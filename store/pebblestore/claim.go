package pebblestore

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"sagabench/store"
)

// dueHeap is a heap of the unfinished sagas, with the one due first at index 0.
type dueHeap []*saga

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].rec.due() < h[j].rec.due() }

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i, j
}

func (h *dueHeap) Push(x any) {
	g := x.(*saga)
	g.pos = len(*h)
	*h = append(*h, g)
}

func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	g := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return g
}

// ClaimDue implements store.Store.
func (s *Store) ClaimDue(ctx context.Context, owner string, lease time.Duration, limit int) (claimed []store.Record, err error) {
	if err := store.CheckClaim(owner, lease, limit); err != nil {
		return nil, err
	}
	var unreadable error
	err = s.write(ctx, func(b *pebble.Batch) {
		now, size := s.now(), 0
		for len(claimed) < limit && size < store.MaxPageBytes && len(s.due) > 0 && s.due[0].rec.due() <= now.UnixMilli() {
			g := s.due[0]
			body, err := longBody(s.db, g.id, g.rec)
			if err != nil {
				unreadable = errors.Join(unreadable, fmt.Errorf("claim %s, set aside for %v: %w", g.gid, store.Quarantine, err))
				s.setDue(g, dueAfter(now, store.Quarantine))
				s.setUnfinished(b, g)
				continue
			}
			g.rec.setEpoch(g.rec.epoch() + 1)
			g.rec.setOwner(owner)
			s.setDue(g, dueAfter(now, lease))
			s.setUnfinished(b, g)
			claimed = append(claimed, g.rec.complete(g.gid, body))
			size += len(g.rec) + len(body)
		}
	})
	if err != nil {
		return nil, err
	}
	return claimed, unreadable
}

// setDue moves g in the due index.
func (s *Store) setDue(g *saga, due int64) {
	g.rec.setTime(dueAt, due)
	heap.Fix(&s.due, g.pos)
}

// setUnfinished adds the entry of g to b.
func (s *Store) setUnfinished(b *pebble.Batch, g *saga) {
	setEntry(b, unfinishedKey, g.id, g.gid, g.rec, nil)
}
