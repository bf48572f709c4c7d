package sqlconn

import (
	"cmp"
	"context"
	"database/sql"
	"strings"
)

// Statement is an SQL statement of a transaction.
type Statement struct {
	Text string
	Args []any
	Rows int64 // how many rows it must change; 0: any number
}

// Transact executes statements on a MariaDB or MySQL as one transaction, in one message or,
// with apart, in one for each. A statement alone that changes one row at most is a
// transaction by itself. Transact reports whether all was done. If not, nothing was: a
// statement failed, or with apart changed fewer rows than it must. There is no error if
// the statement failed with one for which doesNotFit returns true.
func Transact(ctx context.Context, db *sql.DB, statements []Statement, apart bool, doesNotFit func(error) bool) (done bool, err error) {
	messages := statements
	alone := len(messages) == 1 && messages[0].Rows <= 1
	if !alone {
		messages[0].Text = "BEGIN;" + messages[0].Text
		messages = append(messages, Statement{Text: "COMMIT"})
		if !apart {
			messages = []Statement{joined(messages)}
		}
	}
	err = OnConnection(ctx, db, func(conn *sql.Conn) error {
		for _, m := range messages {
			rows, err := Affected(conn.ExecContext(ctx, m.Text, m.Args...)) // of the last
			if err == nil && rows >= m.Rows {
				continue
			}
			if err != nil && doesNotFit(err) {
				err = nil
			}
			if alone {
				return err
			}
			return cmp.Or(err, RollBack(ctx, conn))
		}
		done = true
		return nil
	})
	return done, err
}

func joined(statements []Statement) (all Statement) {
	var texts []string
	for _, s := range statements {
		texts = append(texts, s.Text)
		all.Args = append(all.Args, s.Args...)
	}
	all.Text = strings.Join(texts, ";")
	return all
}
