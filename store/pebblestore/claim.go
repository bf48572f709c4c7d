package pebblestore

import (
	"container/heap"
	"context"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"sagabench/store"
)

// dueHeap holds the unfinished sagas, the one that is due first at its top.
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
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.calls.Done()
	defer s.log.rescue(&err)

	b := s.db.NewBatch()
	defer func() { _ = b.Close() }()
	claimed, sent, err := s.claim(b, owner, lease, limit)
	if err == nil {
		err = s.settle(b, sent)
	}
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// claim is the part of ClaimDue that holds s.mu, which it releases.
func (s *Store) claim(b *pebble.Batch, owner string, lease time.Duration, limit int) (claimed []store.Record, sent *commit, err error) {
	defer s.mu.Unlock()
	now := s.now()
	for len(claimed) < limit && len(s.due) > 0 && s.due[0].rec.due() <= now.UnixMilli() {
		g := s.due[0]
		body, err := s.longBody(g)
		if err != nil && len(claimed) == 0 {
			return nil, nil, fmt.Errorf("claim %s: %w", g.gid, err)
		} else if err != nil {
			break // the next call will tell; what is claimed must be written
		}
		g.rec.setEpoch(g.rec.epoch() + 1)
		g.rec.setOwner(owner)
		g.rec.setTime(dueAt, dueAfter(now, lease))
		heap.Fix(&s.due, 0)
		setEntry(b, unfinishedKey, g.id, g.gid, g.rec, nil)
		claimed = append(claimed, g.rec.complete(g.gid, body))
	}
	sent, err = s.send(b)
	return claimed, sent, err
}
