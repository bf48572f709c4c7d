package backend

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sagabench/store"
	"sagabench/store/open"
)

// classes has the settings that give a store each durability class: of its server, or, if
// it is embedded, of its configuration. SQL servers also have D1, in which a crash may
// leave a database that cannot be read. Nobody should run them so.
var classes = map[string]map[store.Durability]map[string]string{
	open.Pebble: {
		store.D2: {pebbleSync: "false"},
		store.D3: {pebbleSync: "true"},
	},
	open.Redis: {
		store.D0: {"appendonly": "no", "save": ""},
		store.D1: {"appendonly": "no", "save": "3600 1\n300 100\n60 10000"}, // what Redis 7 has without a configuration file
		store.D2: {"appendonly": "yes", "appendfsync": "everysec", "save": ""},
		store.D3: {"appendonly": "yes", "appendfsync": "always", "save": ""},
		store.D4: {"appendonly": "yes", "appendfsync": "always", "save": ""}, // and what SetDurability sets
	},
	// Of the two values with class D2, 2 loses less: a crash of the process alone loses
	// nothing, because each commit writes the log. sync_binlog counts only with a binlog.
	open.MySQL: {
		store.D2: {"innodb_flush_log_at_trx_commit": "2", "sync_binlog": "1"},
		store.D3: {"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1"},
		store.D4: {"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1"}, // and those of package sqlnodes
	},
	open.Postgres: {
		store.D2: {"synchronous_commit": "off"},
		store.D3: {"synchronous_commit": "on"},
		store.D4: {"synchronous_commit": "on"}, // and those of package sqlnodes
	},
}

const pebbleSync = "pebble.sync"

// SetDurability gives the store a durability class. It changes the configuration of an
// embedded store, and returns the settings to start the server of another one with, for D4
// with a replica. They need not suffice: other settings, or a file system in memory, may lower the class. So
// read the class back from the store. The error names the classes that the store can be
// given.
func SetDurability(t *open.Target, class store.Durability) (settings map[string]string, err error) {
	settings, ok := classes[t.Driver][class]
	if !ok {
		var have []string
		for _, d := range slices.Sorted(maps.Keys(classes[t.Driver])) {
			have = append(have, d.String())
		}
		why := ""
		if class == store.D4 {
			why = ", which has no replica"
		}
		return nil, fmt.Errorf("%s is not available for %s%s: want %s", class, t.Driver, why, strings.Join(have, ", "))
	}
	if t.Embedded() {
		t.Config.Pebble.Sync = settings[pebbleSync] == "true"
		return nil, nil
	}
	if t.Driver == open.Redis && class == store.D4 {
		t.Config.Redis.Replicas = max(1, t.Config.Redis.Replicas)
	}
	return maps.Clone(settings), nil
}
