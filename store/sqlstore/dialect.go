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
	// is returned. keep is for how long finished sagas are kept.
	apply(db *gorm.DB, c *chunk, keep int64) (rest chunk, err error)

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

	// hasNoEffect reports whether err says that a transaction lost a race for
	// locks, and was or can be rolled back.
	hasNoEffect(err error) bool

	settings(db *gorm.DB) (store.Settings, error)
}

// Indexes, by the names that dialects know.
const (
	indexGID = "saga_gid"
	indexDue = "saga_due"
)
