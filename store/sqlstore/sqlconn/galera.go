package sqlconn

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
)

// GaleraSession makes a SELECT outside a transaction, and BEGIN, wait until the node has
// everything that was acknowledged before by any node. A COMMIT fails if it has written
// by an old state, but what a transaction only reads, as do refusals, must not be old.
var GaleraSession = map[string]string{
	"wsrep_sync_wait":   "1",
	"wsrep_dirty_reads": "OFF", // a node without the others must not answer
}

// FindGalera reports whether the server is a node of Galera. It fails if the node is not
// ready, or takes no transactions of this size.
func FindGalera(ctx context.Context, db *sql.DB, bytes, rows int64) (bool, error) {
	values, err := QueryValues(ctx, db, "SHOW VARIABLES WHERE Variable_name IN ('wsrep_on', 'wsrep_provider', 'wsrep_max_ws_size', 'wsrep_max_ws_rows')")
	if err != nil || values["wsrep_on"] != "ON" || values["wsrep_provider"] == "none" || values["wsrep_provider"] == "" {
		return false, err
	}
	status, err := QueryValues(ctx, db, "SHOW STATUS LIKE 'wsrep_ready'")
	if err == nil && status["wsrep_ready"] != "ON" {
		err = errors.New("the Galera node is not ready (wsrep_ready): it has lost the other nodes, or is joining them")
	}
	if err != nil {
		return true, err
	}
	for name, least := range map[string]int64{"wsrep_max_ws_size": bytes, "wsrep_max_ws_rows": rows} {
		if n, err := strconv.ParseInt(values[name], 10, 64); err == nil && n != 0 && n < least {
			return true, fmt.Errorf("%s is %d: a batch may need %d", name, n, least)
		}
	}
	return true, nil
}
