package sqlstore

import (
	"context"

	"gorm.io/gorm"

	"sagabench/store"
)

// dialect is in what the two kinds of server differ. Its statements on whole
// batches are written by hand, and go through gorm's Exec and Raw: gorm has no
// expression of the server's clock for an insert, no update of many rows to
// different values, and no locking in the order of an index.
type dialect interface {
	// connect opens the pool. It makes the database, where that is the schema.
	connect(ctx context.Context, cfg Config) (*gorm.DB, error)

	// migrating runs f on one connection, while nobody else does with this
	// schema, and with the schema there.
	migrating(db *gorm.DB, cfg Config, f func(tx *gorm.DB) error) error

	// migrations are the statements of each step of the schema's history. Each
	// may be run again: MySQL cannot take back half a step.
	migrations() [][]string

	// now is an SQL expression: the server's clock, the same in all of a statement.
	now() string

	// insert puts new sagas in and returns the gids of those that were not
	// there: all of them, or else not necessarily every one.
	insert(tx *gorm.DB, creates []*store.Create) ([]string, error)

	// lock reads the sagas with these gids, sorted, as they are now, and locks
	// them in that order.
	lock(tx *gorm.DB, gids []string) ([]lockedRow, error)

	// write writes rows that are locked.
	write(tx *gorm.DB, rows []written) error

	// lockDue reads up to limit sagas that are due, longest overdue first, and
	// locks them. It leaves out what others have locked, if the server can.
	lockDue(tx *gorm.DB, limit int) ([]dueRow, error)

	// sweep drops up to limit sagas whose retention has ended, and says how many.
	sweep(db *gorm.DB, limit int) (int64, error)

	// hasNoEffect reports whether err says that a transaction lost a race for
	// locks, and was or can be rolled back.
	hasNoEffect(err error) bool

	settings(db *gorm.DB) (store.Settings, error)
}

// dueRow is a saga to be claimed.
type dueRow struct {
	Saga row   `gorm:"embedded"`
	Now  int64 // the server's clock
}
