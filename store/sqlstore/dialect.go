package sqlstore

import (
	"context"

	"gorm.io/gorm"

	"sagabench/store"
)

// dialect is in what the two kinds of server differ.
type dialect interface {
	// connect opens the pool. It makes the database, where that is the schema.
	connect(ctx context.Context, cfg Config, dial dialer) (*gorm.DB, error)

	// migrating runs f on one connection, while nobody else does with this
	// schema, and with the schema there.
	migrating(db *gorm.DB, cfg Config, f func(tx *gorm.DB) error) error

	// migrations are the statements of each step of the schema's history. Each
	// may be run again: MySQL cannot take back half a step.
	migrations() [][]string

	// now is an SQL expression: the server's clock, the same in all of a statement.
	now() string

	// by names the table in a query that is to go by this index.
	by(index string) string

	// apply writes what nothing stands against, in as few statements as can be,
	// and returns the rest. It has written all that the rest lacks, or an error
	// is returned. keep is for how long finished sagas are kept. With noWait it
	// fails when a row is locked, as after setNoWait.
	apply(db *gorm.DB, c *chunk, keep int64, noWait bool) (rest chunk, err error)

	// setNoWait has a transaction fail, at once or soon, if it has to wait for one
	// of these rows.
	setNoWait(tx *gorm.DB, c *chunk) error

	// insert puts new sagas in and returns the gids of those that were not
	// there: all of them, or else not necessarily every one.
	insert(tx *gorm.DB, creates []*job[*store.Create]) ([]string, error)

	// skipsLocked reports whether the server can leave out rows that others
	// have locked.
	skipsLocked() bool

	// sweep drops up to limit sagas whose retention has ended, and says how many.
	sweep(db *gorm.DB, limit int) (int64, error)

	// drop drops our tables, and the schema unless something else is in it.
	drop(db *gorm.DB, schema string) error

	// isDeadlock and isLocked report whether err says that a transaction has had,
	// or will have, no effect: because it lost a deadlock, or because it has waited
	// for a lock for as long as it may.
	isDeadlock(err error) bool
	isLocked(err error) bool

	settings(db *gorm.DB) (store.Settings, error)

	// showsUnflushed reports whether the server, by the settings last read, shows
	// others a commit before it is on disk, and has it there before it acknowledges
	// it.
	showsUnflushed() bool

	// flush returns once everything is on disk that was committed before.
	flush(db *gorm.DB) error
}

// Indexes, by the names that dialects know.
const (
	indexGID = "saga_gid"
	indexDue = "saga_due"
)
