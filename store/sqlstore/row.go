package sqlstore

import (
	"context"
	"time"

	"sagabench/store"
	"sagabench/store/sqlstore/sqlconn"
)

// row is a row of the table saga.
type row struct {
	GID     string
	Status  string
	Done    bool // the status is final
	Epoch   int64
	Owner   string
	Marks   string
	Created int64
	Updated int64
	Due     int64 // if the saga is done: when its retention ends
	Note    []byte
	Body    []byte

	Bytes int   // of note and body, if the query asked for their length
	Now   int64 // the server's clock when the row was read
}

// What a query reads of note and body, which may be large. To tell the length of a
// body InnoDB reads all of it.
const (
	withoutBody = "NULL, NULL, 0"
	withLength  = "NULL, NULL, OCTET_LENGTH(body) + COALESCE(OCTET_LENGTH(note), 0)"
	withBody    = "note, body, 0"
)

// columns lists what Store.rows reads. body is one of the constants above.
func (s *Store) columns(body string) string {
	return "gid, status, done, epoch, owner, marks, created, updated, due, " + body + ", " + s.dialect.now()
}

// status returns the status of the row, or 0 if there is none such.
func (r *row) status() store.Status {
	if len(r.Status) != 1 {
		return 0
	}
	return store.Status(r.Status[0])
}

// record returns the contract's record. The error wraps store.ErrUnreadable if the
// row is not a saga.
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
	if 0 < r.Epoch && r.Epoch <= store.MaxEpoch { // else it stays 0, which Check refuses
		record.Epoch = uint32(r.Epoch)
	}
	if !r.Done {
		record.Due = time.UnixMilli(r.Due)
	}
	return record, record.Check()
}

// expired reports whether the retention of the saga had ended when the row was read.
func (r *row) expired() bool { return r.Done && r.Due <= r.Now }

// exec runs a statement whose parameters are written as ?, whatever the server.
func (s *Store) exec(ctx context.Context, db sqlconn.Session, text string, args ...any) error {
	_, err := db.ExecContext(ctx, s.dialect.bind(text), args...)
	return err
}

// rows runs a query of the columns that Store.columns lists. Its parameters are
// written as ?.
func (s *Store) rows(ctx context.Context, db sqlconn.Session, text string, args ...any) ([]row, error) {
	return sqlconn.Query(ctx, db, s.dialect.bind(text), args, func(r *row) []any {
		return []any{
			&r.GID, &r.Status, &r.Done, &r.Epoch, &r.Owner, &r.Marks, &r.Created, &r.Updated, &r.Due,
			&r.Note, &r.Body, &r.Bytes, &r.Now,
		}
	})
}

func byGID(rows []row) map[string]*row {
	all := make(map[string]*row, len(rows))
	for i := range rows {
		all[rows[i].GID] = &rows[i]
	}
	return all
}
