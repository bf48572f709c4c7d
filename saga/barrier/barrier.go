package barrier

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Barrier guards the work of one branch call. A request with several pieces of work uses the
// same Barrier several times, always in the same order, since each use has a number. It is
// not safe for concurrent use.
type Barrier struct {
	TransType string // saga, or another transaction type of dtm
	GID       string
	BranchID  string
	Op        string // action or compensate; for dtm's others: try, confirm, cancel, commit, rollback

	// Table holds the rows of SQL barriers. Empty: DefaultTable.
	Table string

	uses int
}

// ErrRefused says that the business refuses the work for good. AdjustRedis and CallRedis
// return it. The work of a SQL barrier may.
var ErrRefused = errors.New("refused")

// FromQuery reads a barrier from the query parameters of a branch call: gid, trans_type,
// branch_id and op. The error names a parameter that is missing, repeated or malformed;
// Barrier.Call has the format.
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

// use is one use of a barrier.
type use struct {
	Barrier
	undoes string // the op that this one compensates, if any
	id     string // the number of the use
}

// next returns the next use.
func (b *Barrier) next() (use, error) {
	if err := b.check(); err != nil {
		return use{}, err
	}
	b.uses++
	undoes, _ := undoneBy(b.Op)
	return use{*b, undoes, fmt.Sprintf("%02d", b.uses)}, nil
}

// check refuses values that the table's columns would truncate or compare as equal. One call
// would then look like a repeat of another.
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
		case strings.ContainsFunc(field.value, malformed):
			return fmt.Errorf("barrier: %s %q has characters other than visible ASCII, or a semicolon", field.name, field.value)
		}
	}
	if _, known := undoneBy(b.Op); !known {
		return fmt.Errorf("barrier: op %q is unknown", b.Op)
	}
	return nil
}

// malformed reports characters that collations ignore or fold, and the semicolon, which
// dtm's client drops.
func malformed(c rune) bool { return c <= ' ' || c > '~' || c == ';' }

// undoneBy returns the op that this op compensates, or an empty one.
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
