package sqlstore

import (
	"bytes"
	"errors"
	"slices"

	"gorm.io/gorm"

	"sagabench/store"
)

// maxRounds bounds how often sagas are inserted that others create and drop at
// the same time.
const maxRounds = 10

// create puts in what is new, and says of the rest what is there.
func (s *Store) create(tx *gorm.DB, creates []*job[*store.Create]) error {
	for range maxRounds {
		rest, err := s.insertNew(tx, creates)
		if err != nil || len(rest) == 0 {
			return err
		}
		if creates, err = s.tellApart(tx, rest); err != nil || len(creates) == 0 {
			return err
		}
	}
	return errors.New("the same sagas are created and dropped all the time")
}

// insertNew puts in what is new, and returns the rest.
func (s *Store) insertNew(db *gorm.DB, creates []*job[*store.Create]) ([]*job[*store.Create], error) {
	if len(creates) == 0 {
		return nil, nil
	}
	for _, j := range creates {
		j.err = nil // of the try before
	}
	in, err := s.dialect.insert(db, creates)
	if err != nil || len(in) == len(creates) {
		return nil, err
	}
	return without(creates, in), nil
}

// present is what is there of a saga that could not be put in.
type present struct {
	GID     string `gorm:"column:gid"`
	Body    []byte
	Expired bool
}

// tellApart refuses the creates of sagas that are there. It drops those that are
// there only because nobody has swept them yet, and returns the creates that may
// be tried again.
func (s *Store) tellApart(tx *gorm.DB, creates []*job[*store.Create]) (again []*job[*store.Create], err error) {
	var there []present
	err = tx.Model(&row{}).Select("gid, body, done = true AND due <= "+s.dialect.now()+" AS expired").
		Where("gid IN ?", gidsOf(creates)).Find(&there).Error
	if err != nil {
		return nil, err
	}
	var expired []string
	for _, j := range creates {
		n := slices.IndexFunc(there, func(r present) bool { return r.GID == j.change.GID })
		switch {
		case n < 0:
			again = append(again, j)
		case there[n].Expired:
			again = append(again, j)
			expired = append(expired, j.change.GID)
		case bytes.Equal(there[n].Body, j.change.Body):
			j.err = store.ErrDuplicate
		default:
			j.err = store.ErrExists
		}
	}
	if len(expired) == 0 {
		return again, nil
	}
	return again, tx.Where("gid IN ? AND done = true AND due <= "+s.dialect.now(), expired).Delete(&row{}).Error
}

// without leaves out the jobs of these gids.
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
