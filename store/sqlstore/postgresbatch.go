package sqlstore

import (
	"gorm.io/gorm"

	"sagabench/store"
)

// A batch is handed over as one array for each column, so that its statement is
// always the same and is planned once, and answers with the gids it has written.
// Both parts are one statement, and so one round trip and one transaction.
// Arrays are passed by pointer: gorm would spread them into as many parameters.

// apply writes everything that nothing stands against.
func (d *postgresDialect) apply(db *gorm.DB, c *chunk, keep int64, noWait bool) (rest chunk, err error) {
	if noWait {
		err = db.Transaction(func(tx *gorm.DB) error {
			if err := d.setNoWait(tx, c); err != nil {
				return err
			}
			rest, err = d.apply(tx, c, keep, false)
			return err
		})
		return rest, err
	}
	var text string
	var args []any
	switch {
	case len(c.transitions) == 0:
		text, args = d.inserting(), insertArgs(c.creates)
	case len(c.creates) == 0:
		text, args = d.updating(), updateArgs(c.transitions, keep)
	default:
		text = "WITH inserted AS (" + d.inserting() + "), updated AS (" + d.updating() +
			") SELECT gid FROM inserted UNION ALL SELECT gid FROM updated"
		args = append(insertArgs(c.creates), updateArgs(c.transitions, keep)...)
	}
	written, err := writtenBy(db.Raw(text, args...))
	if err != nil || len(written) == len(c.creates)+len(c.transitions) {
		return chunk{}, err
	}
	return chunk{creates: without(c.creates, written), transitions: without(c.transitions, written)}, nil
}

// setNoWait implements dialect. NOWAIT would not look for rows that others have
// inserted or deleted and not committed. The time is short, but long enough for
// the locks under which a table grows.
func (d *postgresDialect) setNoWait(tx *gorm.DB, _ *chunk) error {
	return tx.Exec("SET LOCAL lock_timeout = '5ms'").Error
}

func (d *postgresDialect) insert(tx *gorm.DB, jobs []*job[*store.Create]) (written []string, err error) {
	return writtenBy(tx.Raw(d.inserting(), insertArgs(jobs)...))
}

// writtenBy runs a statement and reads its gids. gorm's own Scan would write all
// arguments into a text for a log, which costs more than the rest of it.
func writtenBy(statement *gorm.DB) (gids []string, err error) {
	rows, err := statement.Rows()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var gid string
		if err := rows.Scan(&gid); err != nil {
			return nil, err
		}
		gids = append(gids, gid)
	}
	return gids, rows.Err()
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
	return []any{&gids, &dues, &owners, &branches, &bodies}
}

// Marks come as the text of the column with a dot for each that stays, and as
// the place of the one that changes, which spares looking at each. The guard
// lets no mark go back and none beyond the end.
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

func updateArgs(jobs []*job[*store.Transition], keep int64) []any {
	n := len(jobs)
	gids, epochs, statuses, become := make([]string, n), make([]int64, n), make([]string, n), make([]string, n)
	dones, releases, dues := make([]bool, n), make([]bool, n), make([]*int64, n)
	places, marks, notes := make([]int32, n), make([]string, n), make([][]byte, n)
	for i, j := range jobs {
		t := j.change
		gids[i], epochs[i], statuses[i], become[i] = t.GID, int64(t.Epoch), string(rune(t.From)), string(rune(t.To))
		dones[i], releases[i] = t.To.Final(), t.Release
		if due, moved := dueIn(t, keep); moved {
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
	return []any{&gids, &epochs, &statuses, &become, &dones, &releases, &dues, &places, &marks, &notes}
}

// patch writes marks as the column has them, as far as the last; of one mark,
// whose place is given, only itself.
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
