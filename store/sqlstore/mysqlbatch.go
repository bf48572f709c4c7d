package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"strconv"
	"strings"

	"sagabench/store"
	"sagabench/store/sqlstore/sqlconn"
)

// apply is all or nothing. It is one transaction: an INSERT of what is created and an
// UPDATE for each set of equal transitions, sent together with its COMMIT. So the
// server never waits for the client while rows are locked. A statement fails if the
// UPDATE before it has not found all its rows, and the server executes nothing that
// follows a failed statement.
func (d *mysqlDialect) apply(ctx context.Context, db *sql.DB, c chunk, retention int64, noWait bool) (rest chunk, err error) {
	b := mysqlBatch{now: d.now()}
	if noWait && d.hasNoWait {
		b.add(d.noWait(c))
	}
	b.update(c.transitions, retention)
	b.insert(c.creates)
	if b.found != "" && !d.galera && (len(b.statements) > 1 || len(c.transitions) > 1) {
		b.add("SET @saga=" + b.found) // one row alone is atomic by itself
	}
	doesNotFit := func(err error) bool {
		return sqlconn.HasNumber(err, duplicateEntry) || sqlconn.HasNumber(err, outOfRange)
	}
	done, err := sqlconn.Transact(ctx, db, b.statements, d.galera, doesNotFit)
	if done {
		return chunk{}, err
	}
	return c, err
}

func (d *mysqlDialect) insert(ctx context.Context, tx sqlconn.Session, creates []*store.Create) ([]string, error) {
	b := mysqlBatch{now: d.now()}
	b.insert(creates)
	// All or nothing: an existing gid fails the statement. INSERT IGNORE would ignore
	// other errors as well.
	_, err := tx.ExecContext(ctx, b.statements[0].Text, b.statements[0].Args...)
	if sqlconn.HasNumber(err, duplicateEntry) {
		return nil, nil
	}
	return gidsOf(creates), err
}

const duplicateEntry, outOfRange = 1062, 1690

// noWait implements dialect. The statement fails if another transaction has locked,
// inserted or deleted one of these rows and has not ended.
func (d *mysqlDialect) noWait(c chunk) string {
	if !d.hasNoWait {
		return ""
	}
	return "SELECT 1 FROM saga FORCE INDEX (PRIMARY) WHERE gid IN " + listOf(c.gids()) + " FOR UPDATE NOWAIT"
}

// mysqlBatch is statements. Gids and owners, which were checked, contain no quotes and are
// part of the text; the driver escapes bodies and notes.
type mysqlBatch struct {
	now        string
	statements []sqlconn.Statement
	found      string // an expression: 1, or an error if the last statement has not found its rows; empty if it need not
}

func (b *mysqlBatch) add(text string, args ...any) {
	b.statements = append(b.statements, sqlconn.Statement{Text: text, Args: args})
	b.found = ""
}

func (b *mysqlBatch) insert(creates []*store.Create) {
	if len(creates) == 0 {
		return
	}
	var text strings.Builder
	text.Grow(160 * len(creates))
	text.WriteString("INSERT INTO saga (gid, status, done, epoch, created, updated, due, owner, marks, body) VALUES ")
	epoch := cmp.Or(b.found, "1")
	var bodies []any
	for i, c := range creates {
		if i > 0 {
			epoch = "1"
			text.WriteByte(',')
		}
		// A value may refer to the columns before it.
		text.WriteString("('" + c.GID + "','s',0," + epoch + "," + b.now + ",created,created+" + strconv.FormatInt(store.Millis(c.Due), 10) +
			",'" + c.Owner + "','" + strings.Repeat("-", 2*c.Steps) + "',?)")
		bodies = append(bodies, notNil(c.Body))
	}
	b.add(text.String(), bodies...)
}

// update adds one statement per group of transitions that do the same.
func (b *mysqlBatch) update(transitions []*store.Transition, retention int64) {
	groups := store.NewGroups(len(transitions))
	for i, t := range transitions {
		groups = groups.Add(i, t, 0)
	}
	var gids []string
	var indexes []int
	for _, group := range groups.All {
		indexes = groups.AppendIndexes(indexes[:0], group)
		gids = gids[:0]
		for _, i := range indexes {
			gids = append(gids, transitions[i].GID)
		}
		b.updateAll(group.Change.(*store.Transition), gids, retention)
	}
}

// withMarks is an SQL expression: the column marks with these marks set.
func withMarks(marks []store.SetMark) string {
	value := "marks"
	for _, m := range marks {
		value = "INSERT(" + value + "," + place(m) + ",1," + quoted(m.Mark) + ")"
	}
	return value
}

func place(m store.SetMark) string { return strconv.Itoa(int(m.Branch) + 1) }

func quoted[C ~byte](c C) string { return "'" + string(rune(c)) + "'" }

func (b *mysqlBatch) updateAll(t *store.Transition, gids []string, retention int64) {
	var text strings.Builder
	var note []any
	text.WriteString("UPDATE saga FORCE INDEX (PRIMARY) SET marks=" + withMarks(t.Marks))
	if t.To != t.From {
		text.WriteString(",status=" + quoted(t.To) + ",updated=" + b.now)
	}
	if t.To.Final() {
		text.WriteString(",done=1")
	}
	if due, changes := dueIn(t, retention); changes {
		text.WriteString(",due=" + b.now + "+" + strconv.FormatInt(due, 10))
	}
	if t.Release {
		text.WriteString(",owner=''")
	}
	if t.Note != "" {
		text.WriteString(",note=?")
		note = append(note, []byte(t.Note))
	}
	text.WriteString(" WHERE " + cmp.Or(b.found, "1") + " AND gid IN " + listOf(gids) + " AND epoch=" + strconv.FormatUint(uint64(t.Epoch), 10) +
		" AND status=" + quoted(t.From) + " AND '" + t.Owner + "' IN ('',owner)")
	for _, m := range t.Marks {
		// No mark changes once it is set. A branch that the saga does not have has neither.
		text.WriteString(" AND SUBSTR(marks," + place(m) + ",1) IN ('-'," + quoted(m.Mark) + ")")
	}
	b.add(text.String(), note...)
	b.statements[len(b.statements)-1].Rows = int64(len(gids))
	// One more than the largest number is out of range.
	b.found = "1+~0*(ROW_COUNT()<>" + strconv.Itoa(len(gids)) + ")"
}

// notNil returns an empty body for nil, which would be NULL.
func notNil(body []byte) []byte {
	if body == nil {
		return []byte{}
	}
	return body
}
