package sqlstore

import (
	"time"

	"sagabench/store"
)

// row is a saga as the table holds it.
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

// timedRow is a row and the server's clock when it was read.
type timedRow struct {
	Saga row `gorm:"embedded"`
	Now  int64
}

// expired reports whether the retention of the saga has ended, so that it is as
// good as gone.
func (r *timedRow) expired() bool { return r.Saga.Done && r.Saga.Due <= r.Now }

// millis rounds up, so that nothing is due, or gone, before its time.
func millis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
