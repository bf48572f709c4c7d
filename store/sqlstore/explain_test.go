package sqlstore

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"sagabench/internal/fill"
	"sagabench/store"
)

var finishedRows = flag.Int64("rows", 30_000, "finished sagas in the table of TestQueries; of millions also say -timeout 60m")

// No query looks at more rows than it answers with, however many there are, and
// whatever the server knew when it last counted them.
func TestQueries_ReadNoMoreThanTheyAnswer(t *testing.T) {
	forEach(t, func(t *testing.T, k *kind) {
		const unfinished, expired, limit = 300, 3_000, 50
		cfg := k.config()
		cfg.Retention = 24 * time.Hour // longer than the filling takes
		s := open(t, cfg)
		s.stopSweeping()
		s.sweeping.Wait()
		require.NoError(t, fill.Run(t.Context(), s, *finishedRows, 2, create(0).Body, func(int64) {}))
		begin := func() {
			require.NoError(t, s.fill(unfinished, "'s'", false, -time.Hour))
			require.NoError(t, s.fill(unfinished, "'a'", false, time.Hour))
		}
		begin()
		require.NoError(t, s.fill(expired, "'F'", true, -time.Second))
		page, err := s.List(t.Context(), store.Query{Limit: limit})
		require.NoError(t, err)
		some := page.Records[limit/2].GID

		dry := s.db.Session(&gorm.Session{DryRun: true})
		first := func(q store.Query) cursor {
			c, err := parseCursor(q)
			require.NoError(t, err)
			return c
		}
		all, stuck := store.Query{Limit: limit}, store.Query{Limit: limit, Status: store.StatusSubmitted}
		later := store.Query{Limit: limit, Status: store.StatusAborting, Cursor: "0.s-100"}
		anyDue := int64(2 * unfinished)
		var rows []timedRow
		var counted store.Stats
		queries := map[string]struct {
			query *gorm.DB
			most  int64 // rows that it may look at
		}{
			"claim":               {s.due(dry, limit).Find(&rows), limit},
			"list":                {s.list(dry, all, first(all)).Find(&rows), limit},
			"list the unfinished": {s.list(dry, stuck, first(stuck)).Find(&rows), limit},
			"list, a later page":  {s.list(dry, later, first(later)).Find(&rows), limit},
			"stats":               {s.count(dry).Scan(&counted), anyDue},
			"get":                 {dry.Where("gid = ?", some).Where(s.alive()).Find(&[]row{}), 1},
		}
		for _, when := range []string{"never", "when all had ended", "now"} {
			switch when {
			case "when all had ended":
				require.NoError(t, s.db.Exec("DELETE FROM saga WHERE done = false").Error)
				s.analyze(t, k)
				begin()
			case "now":
				s.analyze(t, k)
			}
			for name, tt := range queries {
				read, plan := s.rowsRead(t, k, tt.query.Statement)
				t.Logf("%s, as counted %s: %d rows read: %s", name, when, read, plan)
				require.LessOrEqual(t, read, tt.most+5, name)
				require.Positive(t, read, name)
			}
		}
		// What was read of the index is dropped, and it is all that is.
		dropped, err := s.dialect.sweep(s.db, limit)
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
	require.NoError(t, s.db.Exec(statement).Error)
}

// fill makes sagas on the server, with gids of their status and a number.
func (s *Store) fill(n int, status string, done bool, due time.Duration) error {
	now, numbers := s.dialect.now(), "SELECT i FROM generate_series(1, ?) AS g(i)"
	gid := "left(" + status + ", 1) || '-' || i"
	if _, is := s.dialect.(*mysqlDialect); is {
		numbers = "WITH RECURSIVE g(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM g WHERE i < ?) SELECT i FROM g"
		gid = "CONCAT(ORD(" + status + "), '-', i)"
	}
	return s.db.Connection(func(tx *gorm.DB) error {
		if d, is := s.dialect.(*mysqlDialect); is {
			limit := "cte_max_recursion_depth"
			if d.mariaDB {
				limit = "max_recursive_iterations"
			}
			if err := tx.Exec("SET SESSION "+limit+" = ?", n+1).Error; err != nil {
				return err
			}
		}
		return tx.Exec("INSERT INTO saga (gid, status, done, epoch, created, updated, due, owner, marks, body) "+
			"SELECT "+gid+", "+status+", ?, 1, "+now+" - 7200000, "+now+", "+now+" + ? + i, 'fill', '----', '{}' FROM ("+numbers+") AS n",
			done, due.Milliseconds(), n).Error
	})
}

// rowsRead runs a query and counts the rows, of the table or of an index, that
// the server looked at. It says how the server went about it.
func (s *Store) rowsRead(t *testing.T, k *kind, query *gorm.Statement) (read int64, how string) {
	t.Helper()
	text := query.SQL.String()
	if k.name == "postgres" {
		var plan string
		require.NoError(t, s.db.Connection(func(tx *gorm.DB) error {
			return tx.Raw("EXPLAIN (ANALYZE, FORMAT JSON) " + tx.Dialector.Explain(text, query.Vars...)).Row().Scan(&plan)
		}))
		require.NotContains(t, plan, "Seq Scan")
		var plans []struct{ Plan planNode }
		require.NoError(t, json.Unmarshal([]byte(plan), &plans))
		return plans[0].Plan.scanned(), plans[0].Plan.String()
	}
	require.NoError(t, s.db.Connection(func(tx *gorm.DB) error {
		text = tx.Dialector.Explain(text, query.Vars...)
		var plan []map[string]any
		if err := tx.Raw("EXPLAIN " + text).Scan(&plan).Error; err != nil {
			return err
		}
		for _, table := range plan {
			require.NotContains(t, []string{"ALL", "index"}, fmt.Sprint(table["type"]), "%s: %v", text, plan)
		}
		how = fmt.Sprint(plan)
		if err := tx.Exec("FLUSH STATUS").Error; err != nil {
			return err
		}
		if err := tx.Exec(text).Error; err != nil {
			return err
		}
		reads, err := valuesOf(tx.Raw("SHOW SESSION STATUS LIKE 'Handler_read%'"))
		for _, text := range reads {
			n, bad := strconv.ParseInt(text, 10, 64)
			err = errors.Join(err, bad)
			read += n
		}
		return err
	}))
	return read, how
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
