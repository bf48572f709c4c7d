package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/internal/fill"
	"sagabench/internal/race"
	"sagabench/store"
	"sagabench/store/sqlstore/sqlconn"
)

var finishedRows = flag.Int64("rows", 30_000, "finished sagas in the table of TestQueries; of millions also say -timeout 60m")

// No query looks at more rows than it answers with, however many there are, and
// whatever the server knew when it last counted them.
func TestQueries_ReadNoMoreThanTheyAnswer(t *testing.T) {
	race.Skip(t)
	forEach(t, func(t *testing.T, k *kind) {
		const unfinished, expired, limit = 300, 3_000, 50
		cfg := k.config()
		cfg.Retention = 24 * time.Hour // longer than the filling takes
		s := open(t, cfg)
		s.stopSweeping()
		s.sweeping.Wait()
		require.NoError(t, fill.Run(t.Context(), s, *finishedRows, 2, create(0).Body, func(int64) {}))
		begin := func() {
			require.NoError(t, s.fill(t.Context(), unfinished, "'s'", false, -time.Hour))
			require.NoError(t, s.fill(t.Context(), unfinished, "'a'", false, time.Hour))
		}
		begin()
		require.NoError(t, s.fill(t.Context(), expired, "'F'", true, -time.Second))
		page, err := s.List(t.Context(), store.Query{Limit: limit})
		require.NoError(t, err)
		some := page.Records[limit/2].GID

		first := func(q store.Query) cursor {
			c, err := parseCursor(q)
			require.NoError(t, err)
			return c
		}
		all, stuck := store.Query{Limit: limit}, store.Query{Limit: limit, Status: store.StatusSubmitted}
		later := store.Query{Limit: limit, Status: store.StatusAborting, Cursor: "0.s-100"}
		anyDue := int64(2 * unfinished)
		queries := map[string]struct {
			query string
			most  int64 // rows that it may read
		}{
			"claim":               {literal(s.dueQuery(limit)), limit},
			"list":                {literal(s.listQuery(all, first(all), limit)), limit},
			"list the unfinished": {literal(s.listQuery(stuck, first(stuck), limit)), limit},
			"list, a later page":  {literal(s.listQuery(later, first(later), limit)), limit},
			"stats":               {s.countQuery(), anyDue},
			"get":                 {literal(s.wholeQuery([]string{some})), 1},
		}
		for _, when := range []string{"never", "when all had ended", "now"} {
			switch when {
			case "when all had ended":
				s.mustExec(t, "DELETE FROM saga WHERE done = false")
				s.analyze(t, k)
				begin()
			case "now":
				s.analyze(t, k)
			}
			for name, tt := range queries {
				read, plan := s.rowsRead(t, k, tt.query)
				t.Logf("%s, as counted %s: %d rows read: %s", name, when, read, plan)
				require.LessOrEqual(t, read, tt.most+5, name)
				require.Positive(t, read, name)
			}
		}
		// What was read of the index is dropped, and it is all that is.
		dropped, err := s.dialect.sweep(t.Context(), s.db, limit)
		require.NoError(t, err)
		require.EqualValues(t, limit, dropped)
	})
}

// analyze has the server count what there is.
func (s *Store) analyze(t *testing.T, k *kind) {
	t.Helper()
	statement := "ANALYZE saga"
	if k.name == "mysql" {
		statement = "ANALYZE TABLE saga"
	}
	s.mustExec(t, statement)
}

// fill makes sagas on the server, with gids of their status and a number.
func (s *Store) fill(ctx context.Context, n int, status string, done bool, due time.Duration) error {
	now, numbers := s.dialect.now(), fmt.Sprintf("SELECT i FROM generate_series(1, %d) AS g(i)", n)
	gid := "left(" + status + ", 1) || '-' || i"
	if _, is := s.dialect.(*mysqlDialect); is {
		numbers = fmt.Sprintf("WITH RECURSIVE g(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM g WHERE i < %d) SELECT i FROM g", n)
		gid = "CONCAT(ORD(" + status + "), '-', i)"
	}
	return sqlconn.OnConnection(ctx, s.db, func(conn *sql.Conn) error {
		if d, is := s.dialect.(*mysqlDialect); is {
			limit := "cte_max_recursion_depth"
			if d.mariaDB {
				limit = "max_recursive_iterations"
			}
			if err := s.exec(ctx, conn, fmt.Sprintf("SET SESSION %s = %d", limit, n+1)); err != nil {
				return err
			}
		}
		return s.exec(ctx, conn, fmt.Sprintf("INSERT INTO saga (gid, status, done, epoch, created, updated, due, owner, marks, body) "+
			"SELECT %s, %s, %t, 1, %s - 7200000, %s, %s + %d + i, 'fill', '----', '{}' FROM (%s) AS n",
			gid, status, done, now, now, now, due.Milliseconds(), numbers))
	})
}

// literal writes the arguments of a query into its text.
func literal(text string, args []any) string {
	for _, arg := range args {
		value := fmt.Sprint(arg)
		switch arg := arg.(type) {
		case string:
			value = "'" + arg + "'"
		case []string:
			value = "ARRAY['" + strings.Join(arg, "','") + "']"
		}
		text = strings.Replace(text, "?", value, 1)
	}
	return text
}

// rowsRead runs a query and counts the rows, of the table or of an index, that
// the server read. It also returns the server's plan.
func (s *Store) rowsRead(t *testing.T, k *kind, text string) (read int64, plan string) {
	t.Helper()
	ctx := t.Context()
	if k.name == "postgres" {
		require.NoError(t, s.db.QueryRowContext(ctx, "EXPLAIN (ANALYZE, FORMAT JSON) "+text).Scan(&plan))
		require.NotContains(t, plan, "Seq Scan")
		var plans []struct{ Plan planNode }
		require.NoError(t, json.Unmarshal([]byte(plan), &plans))
		return plans[0].Plan.scanned(), plans[0].Plan.String()
	}
	require.NoError(t, sqlconn.OnConnection(ctx, s.db, func(conn *sql.Conn) error {
		if err := s.explainMySQL(t, conn, text, &plan); err != nil {
			return err
		}
		if err := s.exec(ctx, conn, "FLUSH STATUS"); err != nil {
			return err
		}
		if err := s.exec(ctx, conn, text); err != nil {
			return err
		}
		reads, err := sqlconn.QueryValues(ctx, conn, "SHOW SESSION STATUS LIKE 'Handler_read%'")
		for _, text := range reads {
			n, bad := strconv.ParseInt(text, 10, 64)
			err = errors.Join(err, bad)
			read += n
		}
		return err
	}))
	return read, plan
}

// explainMySQL checks that a query reads no whole table or index.
func (s *Store) explainMySQL(t *testing.T, conn *sql.Conn, text string, plan *string) error {
	rows, err := conn.QueryContext(t.Context(), "EXPLAIN "+text)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		for i, column := range columns {
			*plan += column + "=" + values[i].String + " "
			if column == "type" {
				require.NotContains(t, []string{"ALL", "index"}, values[i].String, text)
			}
		}
	}
	return rows.Err()
}

// planNode is what EXPLAIN of PostgreSQL says of one step.
type planNode struct {
	Node    string     `json:"Node Type"`
	Index   string     `json:"Index Name"`
	Rows    float64    `json:"Actual Rows"`
	Loops   float64    `json:"Actual Loops"`
	Removed float64    `json:"Rows Removed by Filter"`
	Plans   []planNode `json:"Plans"`
}

func (n planNode) scanned() (rows int64) {
	if len(n.Plans) == 0 {
		rows = int64((n.Rows + n.Removed) * n.Loops)
	}
	for _, p := range n.Plans {
		rows += p.scanned()
	}
	return rows
}

func (n planNode) String() string {
	text := strings.TrimSpace(n.Node + " " + n.Index)
	for _, p := range n.Plans {
		text += " < " + p.String()
	}
	return text
}
