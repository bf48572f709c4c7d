package sqlstore

import (
	"time"

	"sagabench/store"
)

// row is a saga as the table holds it, all but InnoDB's own number.
type row struct {
	GID     string `gorm:"column:gid;primaryKey"`
	Status  string
	Done    bool // the status is final
	Epoch   uint32
	Owner   string
	Marks   string
	Created int64
	Updated int64
	Due     int64 // of a saga that is done: when its retention ends
	Note    []byte
	Body    []byte
}

// TableName implements gorm's schema.Tabler.
func (row) TableName() string { return "saga" }

func (r *row) record() store.Record {
	record := store.Record{
		GID:     r.GID,
		Status:  store.Status(r.Status[0]),
		Marks:   store.Marks(r.Marks),
		Epoch:   r.Epoch,
		Owner:   r.Owner,
		Created: time.UnixMilli(r.Created),
		Updated: time.UnixMilli(r.Updated),
		Note:    string(r.Note),
		Body:    r.Body,
	}
	if !r.Done {
		record.Due = time.UnixMilli(r.Due)
	}
	return record
}

// lockedRow is what decides whether a transition applies.
type lockedRow struct {
	ID      int64  // InnoDB's number; 0 on PostgreSQL
	GID     string `gorm:"column:gid"`
	Status  string
	Done    bool
	Epoch   uint32
	Owner   string
	Marks   string
	Updated int64
	Due     int64
	Now     int64 // the server's clock
}

// lockedColumns are those of lockedRow that both kinds of server have.
const lockedColumns = "gid, status, done, epoch, owner, marks, updated, due"

// expired reports whether the retention of the saga has ended, so that it is as
// good as gone.
func (r *lockedRow) expired() bool { return r.Done && r.Due <= r.Now }

// written is what a transition makes of a row.
type written struct {
	lockedRow
	note []byte // nil leaves it as it is
}

// millis rounds up, so that nothing is due, or gone, before its time.
func millis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
