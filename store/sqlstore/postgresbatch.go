package sqlstore

import (
	"context"
	"database/sql"

	"sagabench/store"
	"sagabench/store/sqlstore/sqlconn"
)

// A batch is one array for each column, so that its statement is always the same and
// is planned once. It answers with the gids that it has written. Creates and
// transitions are one statement, and so one round trip and one transaction.

// apply implements dialect.
func (d *postgresDialect) apply(ctx context.Context, db *sql.DB, c chunk, retention int64, noWait bool) (rest chunk, err error) {
	if !noWait {
		return d.write(ctx, db, c, retention)
	}
	err = sqlconn.InTransaction(ctx, db, func(tx sqlconn.Session) error {
		if _, err := tx.ExecContext(ctx, d.noWait(c)); err != nil {
			return err
		}
		rest, err = d.write(ctx, tx, c, retention)
		return err
	})
	return rest, err
}

func (d *postgresDialect) write(ctx context.Context, tx sqlconn.Session, c chunk, retention int64) (rest chunk, err error) {
	var text string
	var args []any
	switch {
	case len(c.transitions) == 0:
		text, args = insertOnly, insertArgs(c.creates)
	case len(c.creates) == 0:
		text, args = updateOnly, updateArgs(c.transitions, retention)
	default:
		text, args = insertAndUpdate, append(insertArgs(c.creates), updateArgs(c.transitions, retention)...)
	}
	written, err := sqlconn.QueryStrings(ctx, tx, text, args...)
	if err != nil || len(written) == c.size() {
		return chunk{}, err
	}
	return c.without(written), nil
}

// noWait implements dialect. NOWAIT would ignore rows that others have inserted or
// deleted and not committed. The timeout is short, but longer than the server's own
// locks last while a table grows.
func (d *postgresDialect) noWait(chunk) string { return "SET LOCAL lock_timeout = '5ms'" }

func (d *postgresDialect) insert(ctx context.Context, tx sqlconn.Session, creates []*store.Create) ([]string, error) {
	return sqlconn.QueryStrings(ctx, tx, insertOnly, insertArgs(creates)...)
}

// The statements, each with its parameters numbered.
var (
	insertOnly      = numbered(inserting)
	updateOnly      = numbered(updating)
	insertAndUpdate = numbered("WITH inserted AS (" + inserting + "), updated AS (" + updating + `)
		SELECT gid FROM inserted UNION ALL SELECT gid FROM updated`)
)

const inserting = `
	INSERT INTO saga (gid, status, done, epoch, created, updated, due, owner, marks, body)
	SELECT gid, 's', false, 1, ` + postgresNow + `, ` + postgresNow + `, ` + postgresNow + ` + due, owner, repeat('-', branches), body
	FROM unnest(?::text[], ?::bigint[], ?::text[], ?::int[], ?::bytea[]) AS v(gid, due, owner, branches, body)
	ON CONFLICT (gid) DO NOTHING
	RETURNING gid`

// In updating, v.marks is the text of the column with a dot for each mark that stays.
// If only one mark changes, v.place is its place and v.marks only itself, which spares
// a scan of all. The last condition refuses a mark that is set otherwise, or that is
// beyond the end.
const updating = `
	UPDATE saga SET
		status = v.becomes,
		done = v.done,
		owner = CASE WHEN v.release THEN '' ELSE saga.owner END,
		updated = CASE WHEN v.becomes = v.status THEN updated ELSE ` + postgresNow + ` END,
		due = COALESCE(` + postgresNow + ` + v.due, saga.due),
		note = COALESCE(v.note, saga.note),
		marks = CASE
			WHEN v.place > 0 THEN overlay(saga.marks PLACING right(v.marks, 1) FROM v.place)
			WHEN v.marks = '' THEN saga.marks
			ELSE (
				SELECT string_agg(CASE WHEN substr(v.marks, i, 1) IN ('.', '') THEN substr(saga.marks, i, 1) ELSE substr(v.marks, i, 1) END, '' ORDER BY i)
				FROM generate_series(1, length(saga.marks)) AS i)
			END
	FROM unnest(?::text[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::bool[], ?::bool[], ?::bigint[], ?::int[], ?::text[], ?::bytea[])
		AS v(gid, epoch, owner, status, becomes, done, release, due, place, marks, note)
	WHERE saga.gid = v.gid AND saga.epoch = v.epoch AND v.owner IN ('', saga.owner) AND saga.status = v.status AND CASE
		WHEN v.place > 0 THEN substr(saga.marks, v.place, 1) IN ('-', right(v.marks, 1))
		WHEN v.marks = '' THEN true
		ELSE NOT EXISTS (
			SELECT FROM generate_series(1, length(v.marks)) AS i
			WHERE substr(v.marks, i, 1) <> '.' AND substr(saga.marks, i, 1) NOT IN ('-', substr(v.marks, i, 1)))
		END
	RETURNING saga.gid`

func insertArgs(creates []*store.Create) []any {
	n := len(creates)
	gids, dues, owners := make([]string, n), make([]int64, n), make([]string, n)
	branches, bodies := make([]int32, n), make([][]byte, n)
	for i, c := range creates {
		gids[i], dues[i], owners[i] = c.GID, store.Millis(c.Due), c.Owner
		branches[i], bodies[i] = int32(2*c.Steps), notNil(c.Body)
	}
	return []any{gids, dues, owners, branches, bodies}
}

func updateArgs(transitions []*store.Transition, retention int64) []any {
	n := len(transitions)
	gids, epochs, statuses, become := make([]string, n), make([]int64, n), make([]string, n), make([]string, n)
	owners, dones, releases, dues := make([]string, n), make([]bool, n), make([]bool, n), make([]*int64, n)
	places, marks, notes := make([]int32, n), make([]string, n), make([][]byte, n)
	for i, t := range transitions {
		gids[i], epochs[i], statuses[i], become[i] = t.GID, int64(t.Epoch), string(rune(t.From)), string(rune(t.To))
		owners[i], dones[i], releases[i] = t.Owner, t.To.Final(), t.Release
		if due, changes := dueIn(t, retention); changes {
			dues[i] = &due
		}
		marks[i] = patch(t.Marks)
		if len(t.Marks) == 1 {
			places[i] = int32(t.Marks[0].Branch) + 1
		}
		if t.Note != "" {
			notes[i] = []byte(t.Note)
		}
	}
	return []any{gids, epochs, owners, statuses, become, dones, releases, dues, places, marks, notes}
}

// patch returns the text for marks: up to the last mark that changes, or one mark alone.
func patch(marks []store.SetMark) string {
	if len(marks) == 1 {
		return string(rune(marks[0].Mark))
	}
	var text []byte
	for _, m := range marks {
		for len(text) <= int(m.Branch) {
			text = append(text, '.')
		}
		text[m.Branch] = byte(m.Mark)
	}
	return string(text)
}
