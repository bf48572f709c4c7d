// Package inspect reads stored sagas for the HTTP API and the page. It bounds the memory
// that these reads take together.
package inspect

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/semaphore"

	"sagabench/saga"
	"sagabench/store"
)

const (
	// MaxBytes bounds the sagas that a Reader has read and that are not released yet.
	MaxBytes = 4 * store.MaxPageBytes
	// SmallBytes is the size up to which a saga, or a response, is not counted.
	SmallBytes = 64 << 10
	// maxWait is how long Page waits for others to release memory.
	maxWait = time.Second
)

// ErrBusy says that MaxBytes are in use. Nothing was read.
var ErrBusy = errors.New("too many large sagas are read at once")

// Statuses are all statuses of a saga, by the name that users know.
var Statuses = []store.Status{store.StatusSubmitted, store.StatusAborting, store.StatusSucceeded, store.StatusFailed}

// ParseStatus returns the status of that name, and whether there is one.
func ParseStatus(name string) (store.Status, bool) {
	for _, s := range Statuses {
		if s.String() == name {
			return s, true
		}
	}
	return 0, false
}

// Reader reads sagas. Make it with NewReader.
type Reader struct {
	coordinator *saga.Coordinator
	store       store.Store
	log         *slog.Logger
	memory      *semaphore.Weighted // of MaxBytes
}

// NewReader returns a reader of a coordinator's store.
func NewReader(c *saga.Coordinator, s store.Store, log *slog.Logger) *Reader {
	return &Reader{coordinator: c, store: s, log: log, memory: semaphore.NewWeighted(MaxBytes)}
}

// Saga reads one saga. Call release when the response has been sent. Returns ErrBusy if
// there is no memory for a large saga, or an error of Coordinator.Get.
func (r *Reader) Saga(ctx context.Context, gid string) (info saga.Info, release func(), err error) {
	info, err = r.coordinator.Get(ctx, gid)
	size := int64(len(info.Body))
	switch {
	case err != nil:
		return saga.Info{}, nil, err
	case size <= SmallBytes:
		return info, func() {}, nil
	case !r.memory.TryAcquire(size):
		return saga.Info{}, nil, ErrBusy
	}
	return info, func() { r.memory.Release(size) }, nil
}

// Page is one page of a list.
type Page struct {
	Sagas []saga.Info // Saga is nil in one whose record cannot be decoded
	Next  string      // cursor of the next page; empty on the last
	Now   time.Time   // by the store's clock

	memory   *semaphore.Weighted
	reserved int64
}

// Release releases the page's memory except keep bytes, for a response that is still being
// sent. A small response keeps nothing.
func (p *Page) Release(keep int) {
	if keep <= SmallBytes {
		keep = 0
	}
	left := min(p.reserved, int64(keep))
	p.memory.Release(p.reserved - left)
	p.reserved = left
}

// Page reads one page of the sagas that match. The caller must call its Release.
// Returns ErrBusy if there is no memory for it within a second.
func (r *Reader) Page(ctx context.Context, query store.Query) (*Page, error) {
	wait, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	if r.memory.Acquire(wait, store.MaxPageBytes) != nil {
		return nil, ErrBusy
	}
	p := &Page{memory: r.memory, reserved: store.MaxPageBytes}
	listed, err := r.store.List(ctx, query)
	if err != nil {
		p.Release(0)
		return nil, err
	}
	p.Next, p.Now = listed.Next, listed.Now
	for _, record := range listed.Records {
		info, err := saga.Read(record)
		if err != nil {
			r.log.Error("cannot read a saga", "gid", record.GID, "error", err)
			info = saga.Info{Record: record}
		}
		p.Sagas = append(p.Sagas, info)
	}
	return p, nil
}

// EachUnfinished calls visit with each page of unfinished sagas, until it returns false
// or an error, and releases the page after that. A saga may come twice if its status
// changes meanwhile.
func (r *Reader) EachUnfinished(ctx context.Context, visit func(*Page) (more bool, err error)) error {
	for _, status := range []store.Status{store.StatusAborting, store.StatusSubmitted} {
		for query := (store.Query{Status: status}); ; {
			page, err := r.Page(ctx, query)
			if err != nil {
				return err
			}
			more, err := visit(page)
			page.Release(0)
			if err != nil || !more {
				return err
			}
			if query.Cursor = page.Next; page.Next == "" {
				break
			}
		}
	}
	return nil
}
