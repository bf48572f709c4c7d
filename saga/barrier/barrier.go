package barrier

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Barrier stands before the work of one call of a branch. A request that does
// several pieces of work passes the same Barrier several times, always in the
// same order: each passage has its number. It is not for use by several
// goroutines at once.
type Barrier struct {
	TransType string // kind of the transaction: saga, or another of dtm's
	GID       string
	BranchID  string
	Op        string // action or compensate; for dtm's others: try, confirm, cancel, commit, rollback

	// Table is where SQL barriers keep their rows. Empty: DefaultTable.
	Table string

	passages int
}

// ErrRefused says that the business refuses what it was asked for, so that there
// is no use in asking again: AdjustRedis and CallRedis return it; the work of a
// SQL barrier may.
var ErrRefused = errors.New("refused")

// FromQuery reads a barrier from the query parameters with which a branch is
// called: gid, trans_type, branch_id and op. The error names the one that is
// missing, given twice or not usable; Barrier.Call says what is.
func FromQuery(query url.Values) (*Barrier, error) {
	for _, name := range []string{"gid", "trans_type", "branch_id", "op"} {
		if n := len(query[name]); n != 1 {
			return nil, fmt.Errorf("barrier: %s is given %d times, must be once", name, n)
		}
	}
	b := &Barrier{
		TransType: query.Get("trans_type"),
		GID:       query.Get("gid"),
		BranchID:  query.Get("branch_id"),
		Op:        query.Get("op"),
	}
	if err := b.check(); err != nil {
		return nil, err
	}
	return b, nil
}

// passage is one use of a barrier.
type passage struct {
	Barrier
	undoes string // the op whose work this one undoes, if any
	id     string
}

// pass numbers the next use.
func (b *Barrier) pass() (passage, error) {
	if err := b.check(); err != nil {
		return passage{}, err
	}
	b.passages++
	undoes, _ := undoneBy(b.Op)
	return passage{*b, undoes, fmt.Sprintf("%02d", b.passages)}, nil
}

// check refuses what the table's columns would cut off or take for equal: then
// one call would pass for the repeat of another.
func (b *Barrier) check() error {
	for _, field := range []struct {
		name, value string
		maxBytes    int
	}{
		{"gid", b.GID, 128},
		{"trans_type", b.TransType, 45},
		{"branch_id", b.BranchID, 128},
		{"op", b.Op, 45},
	} {
		switch {
		case field.value == "":
			return fmt.Errorf("barrier: %s is empty", field.name)
		case len(field.value) > field.maxBytes:
			return fmt.Errorf("barrier: %s has %d bytes, at most %d are allowed", field.name, len(field.value), field.maxBytes)
		case strings.ContainsFunc(field.value, unusable):
			return fmt.Errorf("barrier: %s %q has characters other than visible ASCII, or a semicolon", field.name, field.value)
		}
	}
	if _, known := undoneBy(b.Op); !known {
		return fmt.Errorf("barrier: op %q is none that a branch is called with", b.Op)
	}
	return nil
}

// unusable characters are those that collations ignore or fold, and the
// semicolon, which dtm's client drops.
func unusable(c rune) bool { return c <= ' ' || c > '~' || c == ';' }

// undoneBy is the op whose work this op undoes; empty for one that undoes none.
func undoneBy(op string) (undone string, known bool) {
	switch op {
	case "action", "try", "confirm", "commit":
		return "", true
	case "compensate", "rollback":
		return "action", true
	case "cancel":
		return "try", true
	default:
		return "", false
	}
}
