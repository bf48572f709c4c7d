package sqlstore

import (
	"bytes"
	"context"
	"errors"

	"sagabench/store"
)

// maxRounds bounds how often create inserts sagas that others create and drop at
// the same time.
const maxRounds = 10

// create inserts what is new, and refuses the rest.
func (s *Store) create(ctx context.Context, tx session, creates []*job[*store.Create]) error {
	for range maxRounds {
		if len(creates) == 0 {
			return nil
		}
		for _, j := range creates {
			j.err = nil // of an earlier attempt
		}
		inserted, err := s.dialect.insert(ctx, tx, creates)
		if err != nil || len(inserted) == len(creates) {
			return err
		}
		if creates, err = s.refuse(ctx, tx, without(creates, inserted)); err != nil {
			return err
		}
	}
	return errors.New("the same sagas are created and dropped all the time")
}

// refuse refuses the creates of sagas that exist. It returns the others, which may be
// tried again, and deletes their rows that have expired.
func (s *Store) refuse(ctx context.Context, tx session, creates []*job[*store.Create]) (again []*job[*store.Create], err error) {
	rows, err := s.whole(ctx, tx, gidsOf(creates))
	if err != nil {
		return nil, err
	}
	existing := byGID(rows)
	var expired []string
	for _, j := range creates {
		r := existing[j.change.GID]
		switch {
		case r == nil:
			again = append(again, j)
		case r.expired():
			again = append(again, j)
			expired = append(expired, r.GID)
		case bytes.Equal(r.Body, j.change.Body):
			j.err = store.ErrDuplicate
		default:
			j.err = store.ErrExists
		}
	}
	if len(expired) == 0 {
		return again, nil
	}
	gidIn, args := s.dialect.gidIn(expired)
	return again, s.exec(ctx, tx, "DELETE FROM saga WHERE "+gidIn+" AND done = true AND due <= "+s.dialect.now(), args...)
}

// without returns the jobs whose gids are not in gids.
func without[C store.Change](jobs []*job[C], gids []string) (rest []*job[C]) {
	out := make(map[string]bool, len(gids))
	for _, gid := range gids {
		out[gid] = true
	}
	for _, j := range jobs {
		if !out[j.change.Gid()] {
			rest = append(rest, j)
		}
	}
	return rest
}

func gidsOf[C store.Change](jobs []*job[C]) []string {
	gids := make([]string, len(jobs))
	for i, j := range jobs {
		gids[i] = j.change.Gid()
	}
	return gids
}
