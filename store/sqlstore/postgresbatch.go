package sqlstore

import (
	"context"
	"database/sql"

	"sagabench/store"
)

// A batch is one array for each column, so that its statement is always the same and
// is planned once. It answers with the gids that it has written. Creates and
// transitions are one statement, and so one round trip and one transaction.

// apply implements dialect.
func (d *postgresDialect) apply(ctx context.Context, db *sql.DB, c *chunk, retention int64, noWait bool) (rest chunk, err error) {
	if !noWait {
		return d.write(ctx, db, c, retention)
	}
	err = inTransaction(ctx, db, func(tx session) error {
		if err := d.setNoWait(ctx, tx, c); err != nil {
			return err
		}
		rest, err = d.write(ctx, tx, c, retention)
		return err
	})
	return rest, err
}

func (d *postgresDialect) write(ctx context.Context, tx session, c *chunk, retention int64) (rest chunk, err error) {
	var text string
	var args []any
	switch {
	case len(c.transitions) == 0:
		text, args = d.inserting(), insertArgs(c.creates)
	case len(c.creates) == 0:
		text, args = d.updating(), updateArgs(c.transitions, retention)
	default:
		text = "WITH inserted AS (" + d.inserting() + "), updated AS (" + d.updating() +
			") SELECT gid FROM inserted UNION ALL SELECT gid FROM updated"
		args = append(insertArgs(c.creates), updateArgs(c.transitions, retention)...)
	}
	written, err := queryStrings(ctx, tx, d.bind(text), args...)
	if err != nil || len(written) == c.size() {
		return chunk{}, err
	}
	return chunk{creates: without(c.creates, written), transitions: without(c.transitions, written)}, nil
}

// setNoWait implements dialect. NOWAIT would ignore rows that others have inserted or
// deleted and not committed. The timeout is short, but longer than the server's own
// locks last while a table grows.
func (d *postgresDialect) setNoWait(ctx context.Context, tx session, _ *chunk) error {
	_, err := tx.ExecContext(ctx, "SET LOCAL lock_timeout = '5ms'")
	return err
}

func (d *postgresDialect) insert(ctx context.Context, tx session, jobs []*job[*store.Create]) ([]string, error) {
	return queryStrings(ctx, tx, d.bind(d.inserting()), insertArgs(jobs)...)
}

func (d *postgresDialect) inserting() string {
	now := d.now()
	return "INSERT INTO saga (gid, status, done, epoch, created, updated, due, owner, marks, body) " +
		"SELECT gid, 's', false, 1, " + now + ", " + now + ", " + now + " + due, owner, repeat('-', branches), body " +
		"FROM unnest(?::text[], ?::bigint[], ?::text[], ?::int[], ?::bytea[]) AS v(gid, due, owner, branches, body) " +
		"ON CONFLICT (gid) DO NOTHING RETURNING gid"
}

func insertArgs(jobs []*job[*store.Create]) []any {
	n := len(jobs)
	gids, dues, owners := make([]string, n), make([]int64, n), make([]string, n)
	branches, bodies := make([]int32, n), make([][]byte, n)
	for i, j := range jobs {
		c := j.change
		gids[i], dues[i], owners[i] = c.GID, millis(max(c.Due, 0)), c.Owner
		branches[i], bodies[i] = int32(2*c.Steps), notNil(c.Body)
	}
	return []any{gids, dues, owners, branches, bodies}
}

// Marks are the text of the column with a dot for each mark that stays. If only one
// mark changes, place is its place and marks only itself, which spares a scan of all.
// marksFit refuses a mark that is set otherwise, or beyond the end.
const (
	newMarks = "CASE WHEN v.place > 0 THEN overlay(saga.marks PLACING right(v.marks, 1) FROM v.place) " +
		"WHEN v.marks = '' THEN saga.marks ELSE (SELECT string_agg(CASE substr(v.marks, i, 1) WHEN '.' THEN substr(saga.marks, i, 1) " +
		"WHEN '' THEN substr(saga.marks, i, 1) ELSE substr(v.marks, i, 1) END, '' ORDER BY i) FROM generate_series(1, length(saga.marks)) AS i) END"
	marksFit = "CASE WHEN v.place > 0 THEN substr(saga.marks, v.place, 1) IN ('-', right(v.marks, 1)) " +
		"WHEN v.marks = '' THEN true ELSE NOT EXISTS (SELECT FROM generate_series(1, length(v.marks)) AS i " +
		"WHERE substr(v.marks, i, 1) <> '.' AND substr(saga.marks, i, 1) NOT IN ('-', substr(v.marks, i, 1))) END"
)

func (d *postgresDialect) updating() string {
	now := d.now()
	return "UPDATE saga SET status = v.becomes, done = v.done, owner = CASE WHEN v.release THEN '' ELSE owner END, " +
		"updated = CASE WHEN v.becomes = v.status THEN updated ELSE " + now + " END, due = COALESCE(" + now + " + v.due, saga.due), " +
		"marks = " + newMarks + ", note = COALESCE(v.note, saga.note) " +
		"FROM unnest(?::text[], ?::bigint[], ?::text[], ?::text[], ?::bool[], ?::bool[], ?::bigint[], ?::int[], ?::text[], ?::bytea[]) " +
		"AS v(gid, epoch, status, becomes, done, release, due, place, marks, note) " +
		"WHERE saga.gid = v.gid AND saga.epoch = v.epoch AND saga.status = v.status AND " + marksFit + " RETURNING saga.gid"
}

func updateArgs(jobs []*job[*store.Transition], retention int64) []any {
	n := len(jobs)
	gids, epochs, statuses, become := make([]string, n), make([]int64, n), make([]string, n), make([]string, n)
	dones, releases, dues := make([]bool, n), make([]bool, n), make([]*int64, n)
	places, marks, notes := make([]int32, n), make([]string, n), make([][]byte, n)
	for i, j := range jobs {
		t := j.change
		gids[i], epochs[i], statuses[i], become[i] = t.GID, int64(t.Epoch), string(rune(t.From)), string(rune(t.To))
		dones[i], releases[i] = t.To.Final(), t.Release
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
	return []any{gids, epochs, statuses, become, dones, releases, dues, places, marks, notes}
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
