package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sagabench/store"
)

// apply is all or nothing. It is one transaction: an INSERT of what is created and an
// UPDATE for each set of equal transitions, sent together with its COMMIT. So the
// server never waits for the client while rows are locked. A statement fails if the
// UPDATE before it has not found all its rows, and the server executes nothing that
// follows a failed statement.
func (d *mysqlDialect) apply(ctx context.Context, db *sql.DB, c *chunk, retention int64, noWait bool) (rest chunk, err error) {
	b := mysqlBatch{now: d.now()}
	if noWait && d.noWait {
		b.add(d.lockNow(c.gids()))
	}
	b.update(c.transitions, retention)
	b.insert(c.creates)
	if b.found != "" && (len(b.statements) > 1 || len(c.transitions) > 1) {
		b.add("SET @saga=" + b.found) // one row alone is atomic by itself
	}
	var done bool
	err = onConnection(ctx, db, func(conn *sql.Conn) error {
		return conn.Raw(func(conn any) (err error) {
			done, err = b.send(ctx, conn.(driver.ExecerContext))
			return err
		})
	})
	if done {
		return chunk{}, err
	}
	return *c, err
}

func (d *mysqlDialect) insert(ctx context.Context, tx session, jobs []*job[*store.Create]) ([]string, error) {
	b := mysqlBatch{now: d.now()}
	b.insert(jobs)
	args := make([]any, len(b.args))
	for i := range b.args {
		args[i] = b.args[i].Value
	}
	// All or nothing: an existing gid fails the statement. INSERT IGNORE would ignore
	// other errors as well.
	_, err := tx.ExecContext(ctx, strings.Join(b.statements, ";"), args...)
	if hasNumber(err, duplicateEntry) {
		return nil, nil
	}
	return gidsOf(jobs), err
}

const duplicateEntry = 1062

// setNoWait implements dialect. Before MySQL 8.0 there is no NOWAIT, and each lock is
// waited for.
func (d *mysqlDialect) setNoWait(ctx context.Context, tx session, c *chunk) error {
	if !d.noWait {
		return nil
	}
	_, err := tx.ExecContext(ctx, d.lockNow(c.gids()))
	return err
}

// lockNow is a statement that fails if another transaction has locked, inserted or
// deleted one of these rows and has not ended.
func (d *mysqlDialect) lockNow(gids []string) string {
	return "SELECT 1 FROM saga FORCE INDEX (PRIMARY) WHERE gid IN " + listOf(gids) + " FOR UPDATE NOWAIT"
}

// mysqlBatch is statements and their arguments. Gids and owners, which were checked,
// contain no quotes and are part of the text; the driver escapes bodies and notes.
type mysqlBatch struct {
	now        string
	statements []string
	found      string // an expression: 1, or an error if the last statement has not found its rows; empty if it need not
	args       []driver.NamedValue
}

func (b *mysqlBatch) add(statement string) {
	b.statements = append(b.statements, statement)
	b.found = ""
}

func (b *mysqlBatch) arg(value any) {
	b.args = append(b.args, driver.NamedValue{Ordinal: len(b.args) + 1, Value: value})
}

func (b *mysqlBatch) insert(jobs []*job[*store.Create]) {
	if len(jobs) == 0 {
		return
	}
	var text strings.Builder
	text.Grow(160 * len(jobs))
	text.WriteString("INSERT INTO saga (gid, status, done, epoch, created, updated, due, owner, marks, body) VALUES ")
	epoch := cmp.Or(b.found, "1")
	for i, j := range jobs {
		c := j.change
		if i > 0 {
			epoch = "1"
			text.WriteByte(',')
		}
		// One column may be given by those before it.
		text.WriteString("('" + c.GID + "','s',0," + epoch + "," + b.now + ",created,created+" + strconv.FormatInt(millis(max(c.Due, 0)), 10) +
			",'" + c.Owner + "','" + strings.Repeat("-", 2*c.Steps) + "',?)")
		b.arg(notNil(c.Body))
	}
	b.add(text.String())
}

// update adds one statement per group of transitions that do the same.
func (b *mysqlBatch) update(transitions []*job[*store.Transition], keep int64) {
	groups := store.NewGroups(len(transitions))
	for i, j := range transitions {
		groups = groups.Add(i, j.change, 0)
	}
	var gids []string
	var indexes []int
	for _, group := range groups.All {
		indexes = groups.AppendIndexes(indexes[:0], group)
		gids = gids[:0]
		for _, i := range indexes {
			gids = append(gids, transitions[i].change.GID)
		}
		b.updateAll(group.Change.(*store.Transition), gids, keep)
	}
}

// withMarks is what the column marks is to hold.
func withMarks(marks []store.SetMark) string {
	value := "marks"
	for _, m := range marks {
		value = "INSERT(" + value + "," + place(m) + ",1," + quoted(m.Mark) + ")"
	}
	return value
}

func place(m store.SetMark) string { return strconv.Itoa(int(m.Branch) + 1) }

func quoted[C ~byte](c C) string { return "'" + string(rune(c)) + "'" }

func (b *mysqlBatch) updateAll(t *store.Transition, gids []string, keep int64) {
	var text strings.Builder
	text.WriteString("UPDATE saga FORCE INDEX (PRIMARY) SET marks=" + withMarks(t.Marks))
	if t.To != t.From {
		text.WriteString(",status=" + quoted(t.To) + ",updated=" + b.now)
	}
	if t.To.Final() {
		text.WriteString(",done=1")
	}
	if due, moved := dueIn(t, keep); moved {
		text.WriteString(",due=" + b.now + "+" + strconv.FormatInt(due, 10))
	}
	if t.Release {
		text.WriteString(",owner=''")
	}
	if t.Note != "" {
		text.WriteString(",note=?")
		b.arg([]byte(t.Note))
	}
	text.WriteString(" WHERE " + cmp.Or(b.found, "1") + " AND gid IN ('" + strings.Join(gids, "','") + "') AND epoch=" + strconv.FormatUint(uint64(t.Epoch), 10) +
		" AND status=" + quoted(t.From))
	for _, m := range t.Marks {
		// Never back, and of a branch that is not there it is neither.
		text.WriteString(" AND SUBSTR(marks," + place(m) + ",1) IN ('-'," + quoted(m.Mark) + ")")
	}
	b.add(text.String())
	// One more than the greatest number is out of range.
	b.found = "1+~0*(ROW_COUNT()<>" + strconv.Itoa(len(gids)) + ")"
}

const outOfRange = 1690

// send reports whether all of the batch was done; if not, nothing was.
func (b *mysqlBatch) send(ctx context.Context, conn driver.ExecerContext) (done bool, err error) {
	alone := len(b.statements) == 1
	if !alone {
		b.statements = append(slices.Insert(b.statements, 0, "BEGIN"), "COMMIT")
	}
	result, err := conn.ExecContext(ctx, strings.Join(b.statements, ";"), b.args)
	if err == nil {
		rows, err := result.RowsAffected() // of the last
		return rows > 0 || !alone, err
	}
	if hasNumber(err, duplicateEntry) || hasNumber(err, outOfRange) {
		err = nil
	}
	if !alone {
		if _, open := conn.ExecContext(ctx, "ROLLBACK", nil); open != nil {
			// If ctx has ended, ROLLBACK may not have been sent. Nobody else may use a
			// connection with an open transaction.
			return false, fmt.Errorf("%w: %w", driver.ErrBadConn, cmp.Or(err, open))
		}
	}
	return false, err
}

// notNil returns an empty body for nil, which would be NULL.
func notNil(body []byte) []byte {
	if body == nil {
		return []byte{}
	}
	return body
}
