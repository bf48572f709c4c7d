package sqlstore

import (
	"bytes"
	"context"
	"errors"

	"sagabench/store"
	"sagabench/store/sqlstore/sqlconn"
)

// maxRounds bounds how often create inserts sagas that others create and drop at
// the same time.
const maxRounds = 10

// create inserts the sagas of c that are new, and refuses the rest.
func (s *Store) create(ctx context.Context, tx sqlconn.Session, c chunk) error {
	for range maxRounds {
		if len(c.creates) == 0 {
			return nil
		}
		inserted, err := s.dialect.insert(ctx, tx, c.creates)
		if err != nil || len(inserted) == len(c.creates) {
			return err
		}
		c.creates = without(c.creates, inserted)
		if c.creates, err = s.refuse(ctx, tx, c); err != nil {
			return err
		}
	}
	return errors.New("the same sagas are created and dropped all the time")
}

// refuse refuses the creates of sagas that exist. It returns the others, which may be
// tried again, and deletes their rows that have expired.
func (s *Store) refuse(ctx context.Context, tx sqlconn.Session, c chunk) (again []*store.Create, err error) {
	rows, err := s.whole(ctx, tx, gidsOf(c.creates))
	if err != nil {
		return nil, err
	}
	existing := byGID(rows)
	var expired []string
	for _, create := range c.creates {
		r := existing[create.GID]
		switch {
		case r == nil:
			again = append(again, create)
		case r.expired():
			again = append(again, create)
			expired = append(expired, r.GID)
		case bytes.Equal(r.Body, create.Body):
			c.failed[r.GID] = store.ErrDuplicate
		default:
			c.failed[r.GID] = store.ErrExists
		}
	}
	if len(expired) == 0 {
		return again, nil
	}
	gidIn, args := s.dialect.gidIn(expired)
	return again, s.exec(ctx, tx, "DELETE FROM saga WHERE "+gidIn+" AND done = true AND due <= "+s.dialect.now(), args...)
}
