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
	Epoch   int64
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

// status is that of the row, or none.
func (r *row) status() store.Status {
	if len(r.Status) != 1 {
		return 0
	}
	return store.Status(r.Status[0])
}

// record is the row as the contract has it. The error wraps store.ErrUnreadable if it
// is no saga.
func (r *row) record() (store.Record, error) {
	record := store.Record{
		GID:     r.GID,
		Status:  r.status(),
		Marks:   store.Marks(r.Marks),
		Owner:   r.Owner,
		Created: time.UnixMilli(r.Created),
		Updated: time.UnixMilli(r.Updated),
		Note:    string(r.Note),
		Body:    r.Body,
	}
	if 0 < r.Epoch && r.Epoch <= store.MaxEpoch { // else it is 0, which no record has
		record.Epoch = uint32(r.Epoch)
	}
	if !r.Done {
		record.Due = time.UnixMilli(r.Due)
	}
	return record, record.Check()
}

// timedRow is a row and the server's clock when it was read.
type timedRow struct {
	Saga  row `gorm:"embedded"`
	Bytes int // of note and body, where those were not read
	Now   int64
}

// expired reports whether the retention of the saga has ended, so that it is as
// good as gone.
func (r *timedRow) expired() bool { return r.Saga.Done && r.Saga.Due <= r.Now }

// millis rounds up, so that nothing is due, or gone, before its time.
func millis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
