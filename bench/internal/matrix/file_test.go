package matrix_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/matrix"
)

const goodFile = `title: Redis 5.0 and 7.0
tables:
  - name: operations
    title: Basic operations
    measure: operation
    repeats: 4
    set: {clients: 50, payload: 256, duration: 3s, settings: {save: "", appendonly: no}}
    axes:
      - name: server
        values:
          - {name: Redis 5.0, set: {binary: redis-5.0, settings: {appendonly: yes}}}
          - {name: Redis 7.0}
      - name: operation
        values: [SET, GET, LPUSH]
    compare: server
    quick: {repeats: 3, set: {duration: 1s}, axes: {operation: [GET]}}
  - name: sagas
    title: Sagas
    measure: saga
    axes:
      - name: store
        values: [pebble, redis]
    quick: skip
`

func TestParse_ReadsTablesAndTheirVariants(t *testing.T) {
	t.Parallel()
	f, err := matrix.Parse("versions.yml", []byte(goodFile))
	require.NoError(t, err)
	require.Equal(t, "Redis 5.0 and 7.0", f.Title)
	require.Len(t, f.Hash, 64)
	require.Len(t, f.Tables, 2)
	operations, sagas := f.Tables[0], f.Tables[1]
	require.Equal(t, []int{4, 5}, []int{operations.Repeats, sagas.Repeats}, "five are the default")
	require.Equal(t, "server", operations.Compare)
	require.True(t, sagas.Quick.Skip)

	variants := operations.Variants()
	require.Len(t, variants, 6)
	require.Equal(t, []string{"Redis 5.0", "SET"}, variants[0].Names)
	require.Equal(t, []string{"Redis 7.0", "LPUSH"}, variants[5].Names)
	first := variants[0].Values
	require.Equal(t, map[string]string{"save": "", "appendonly": "yes"}, first.Settings(), "those of a variant replace those of the table one by one")
	require.Equal(t, "SET", first[matrix.KeyOperation], "a scalar sets the key with the name of the axis")
	require.Equal(t, 50, first.Int(matrix.KeyClients, 1))
	require.Equal(t, 7, first.Int(matrix.KeyPipeline, 7))
	require.Equal(t, "no", variants[5].Values.Settings()["appendonly"])
}

func TestParse_ReadsTheExampleOfTheDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/matrix.md")
	require.NoError(t, err)
	_, example, _ := strings.Cut(string(text), "```yaml\ntitle:")
	example, _, _ = strings.Cut(example, "```")
	f, err := matrix.Parse("example.yml", []byte("title:"+example))
	require.NoError(t, err)
	require.Len(t, f.Tables[0].Variants(), 4)
}

func TestParse_NamesLineAndFieldOfAMistake(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ old, new, want string }{
		"no YAML":                   {"title: Redis 5.0 and 7.0", "title: [", "versions.yml: yaml: line 2: "},
		"a list":                    {goodFile, "- 7\n", "line 1: want a mapping with tables, title"},
		"nothing":                   {goodFile, "", "it is empty"},
		"two documents":             {"title: Redis", "title: x\n---\ntitle: Redis", "second document"},
		"unknown field":             {"title: Redis", "name: Redis", "line 1: name: unknown field: want one of tables, title"},
		"no title":                  {"title: Redis 5.0 and 7.0\n", "", "line 1: title is missing"},
		"an empty title":            {"title: Redis 5.0 and 7.0", "title:", "line 1: title: want a text"},
		"tables are no list":        {goodFile, "title: x\ntables: 7", "line 2: tables: want a list of tables"},
		"no tables":                 {goodFile, "title: x\ntables: []", "line 2: tables: want a list of tables"},
		"unknown field of a table":  {"measure: saga", "meassure: saga", "line 19: tables[1].meassure: unknown field: want one of axes, compare, measure"},
		"a field twice":             {"repeats: 4", "repeats: 4\n    repeats: 5", "line 7: tables[0].repeats: it is there twice"},
		"no measure":                {"    measure: saga\n", "", "line 17: tables[1]: measure is missing"},
		"unknown measure":           {"measure: saga", "measure: sagas", `line 19: tables[1].measure: "sagas": want one of [saga capacity operation crash]`},
		"a name with a space":       {"name: sagas", "name: the sagas", `line 17: tables[1].name: "the sagas": want 1 to 64 of a-z, 0-9 and -`},
		"a name twice":              {"name: sagas", "name: operations", `line 17: tables[1].name: "operations": there is another table of this name`},
		"repeats are no number":     {"repeats: 4", "repeats: many", `line 6: tables[0].repeats: "many": want a whole number from 1 to 100`},
		"repeats out of bounds":     {"repeats: 4", "repeats: 0", `line 6: tables[0].repeats: "0": want a whole number from 1 to 100`},
		"unknown key":               {"payload: 256", "payloads: 256", "line 7: tables[0].set.payloads: unknown key for measure operation: want one of store, binary"},
		"a key of another measure":  {"payload: 256", "steps: 2", "line 7: tables[0].set.steps: unknown key for measure operation"},
		"a value of another type":   {"clients: 50", "clients: fifty", `line 7: tables[0].set.clients: "fifty": want a whole number from 1 to 10000`},
		"a value out of bounds":     {"clients: 50", "clients: 0", `line 7: tables[0].set.clients: "0": want a whole number from 1 to 10000`},
		"a duration without a unit": {"duration: 3s", "duration: 3", `line 7: tables[0].set.duration: "3": want a duration from 100ms to 1000h, as 500ms, 10s or 1m`},
		"a list as a value":         {"clients: 50", "clients: [50]", "line 7: tables[0].set.clients: want a text"},
		"settings are no mapping":   {`{save: "", appendonly: no}`, "no", "line 7: tables[0].set.settings: want a mapping of the server's settings"},
		"a setting is no value":     {`save: ""`, "save: [1]", "line 7: tables[0].set.settings.save: want one value"},
		"set is no mapping":         {`set: {binary: redis-5.0, settings: {appendonly: yes}}`, "set: 7", "line 11: tables[0].axes[0].values[0].set: want a mapping of store, binary"},
		"no axes":                   {"    axes:\n      - name: store\n        values: [pebble, redis]\n", "", "line 17: tables[1]: axes is missing"},
		"an axis without values":    {"values: [pebble, redis]", "values: []", "line 22: tables[1].axes[0].values: want a list of values"},
		"an axis twice":             {"name: operation\n", "name: server\n", `line 13: tables[0].axes[1].name: "server": there is another axis of this name`},
		"a value twice":             {"[SET, GET, LPUSH]", "[SET, GET, SET]", `line 14: tables[0].axes[1].values[2]: "SET": there is another value of this name`},
		"a value that is no key":    {"name: store\n", "name: engine\n", "line 22: tables[1].axes[0].values[0]: unknown key for measure saga"},
		"an unknown operation":      {"[SET, GET, LPUSH]", "[SET, GET, MGET]", `line 14: tables[0].axes[1].values[2]: "MGET": want one of SET, GET`},
		"binary and image":          {"{clients: 50, ", "{clients: 50, image: 'redis:8', ", "line 11: tables[0].axes[0].values[0]: Redis 5.0, SET: both binary and image: want one of them"},
		"an image of a crash":       {"measure: saga", "measure: crash\n    set: {image: redis}", "line 20: tables[1].set.image: unknown key for measure crash"},
		"an image that is a flag":   {"{name: Redis 7.0}", "{name: 8, set: {image: --rm}}", `line 12: tables[0].axes[0].values[1].set.image: "--rm": want a container image with the server, as redis:7.2`},
		"an unknown store":          {"[pebble, redis]", "[pebble, oracle]", `line 22: tables[1].axes[0].values[1]: "oracle": want pebble, redis`},
		"a value without a name":    {"{name: Redis 7.0}", "{set: {cpus: 1}}", "line 12: tables[0].axes[0].values[1]: name is missing"},
		"compare is no axis":        {"compare: server", "compare: store", `line 15: tables[0].compare: "store" is not an axis: want one of server, operation`},
		"quick is a word":           {"quick: skip", "quick: no", `line 23: tables[1].quick: "no": want skip, or a mapping`},
		"quick of no axis":          {"axes: {operation: [GET]}", "axes: {clients: [1]}", "line 16: tables[0].quick.axes.clients: it is not an axis"},
		"quick of no value":         {"axes: {operation: [GET]}", "axes: {operation: [POP]}", `line 16: tables[0].quick.axes.operation[0]: "POP" is no value of axis operation`},
		"quick sets no key":         {"set: {duration: 1s}", "set: {length: 1s}", "line 16: tables[0].quick.set.length: unknown key"},
		"a control character":       {"title: Redis 5.0 and 7.0", `title: "Redis\e[2J"`, "line 1: title: want a text of one line without control characters"},
		"quick of no known URL":     {"axes: {operation: [GET]}", "axes: {operation: ['redis://u:topsecret@h/']}", `"redis://u:***@h/" is no value of axis operation`},
		"no store":                  {"name: store\n        values: [pebble, redis]", "name: steps\n        values: [1, 2]", "line 17: tables[1]: 1: store is missing"},
		"D0 of Pebble":              {"measure: saga", "measure: saga\n    set: {durability: D0}", "line 23: tables[1].axes[0].values[0]: pebble: durability: D0 is not available for pebble: want D2, D3"},
		"D4 of Pebble":              {"measure: saga", "measure: saga\n    set: {durability: D4}", "pebble: durability: D4 is not available for pebble, which has no replica: want D2, D3"},
		"D4, no replica":            {"[pebble, redis]", "[{name: one, set: {store: redis, durability: D4, replicas: 0}}]", "line 22: tables[1].axes[0].values[0]: one: replicas: 0, must be at least 1 with durability D4"},
		"settings of Pebble":        {"measure: saga", "measure: saga\n    set: {settings: {sync: 1}}", "pebble: settings are for a server that is started, and this store has none"},
		"nodes of Pebble":           {"measure: saga", "measure: saga\n    set: {nodes: 3}", "pebble: nodes and replicas are for servers that a variant starts"},
		"cores of a server":         {"[pebble, redis]", "['redis://:topsecret@h/']\n    set: {cpus: 1}", "redis://:***@h/: binary, image and cpus are for a server that is started"},
		"a class of a server":       {"[pebble, redis]", "['redis://:topsecret@h/']\n    set: {durability: D3}", "durability: it is for pebble, or for a server that a variant starts"},
		"a crash of a server":       {"measure: saga\n    axes:\n      - name: store\n        values: [pebble, redis]", "measure: crash\n    axes:\n      - name: store\n        values: ['redis://:topsecret@h/']", "store: the address of a server: want redis, which is started and crashed"},
		"nodes of another store":    {"[pebble, redis]", "[mysql]\n    set: {nodes: 3}", "mysql: nodes is for a Redis Cluster: a variant starts one mysql"},
		"operations of MariaDB":     {"{clients: 50, ", "{clients: 50, store: mysql, ", "Redis 5.0, SET: store: mysql: operations are measured on a Redis"},
		"a setting of the class":    {"{clients: 50, ", "{clients: 50, durability: D2, ", "settings: appendonly: durability D2 sets it, leave one of the two out"},
		"a setting without a name":  {`{save: "", appendonly: no}`, `{"a b": 1}`, `settings: "a b=1", want NAME=VALUE`},
		"only with --quick":         {"quick: {repeats: 3, set: {duration: 1s}", "quick: {repeats: 3, set: {durability: D1}", "settings: appendonly: durability D1 sets it"},
		"a password is not shown":   {"[pebble, redis]", "['oracle://u:topsecret@h/']", "line 22: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, goodFile, tt.old)
			_, err := matrix.Parse("versions.yml", []byte(strings.Replace(goodFile, tt.old, tt.new, 1)))
			require.ErrorContains(t, err, tt.want)
			require.ErrorContains(t, err, "versions.yml: ")
			require.NotContains(t, err.Error(), "topsecret")
		})
	}
}

func TestParse_NamesNoPassword(t *testing.T) {
	t.Parallel()
	f, err := matrix.Parse("versions.yml", []byte(strings.Replace(goodFile, "[pebble, redis]", "['redis://u:topsecret@h/', {name: 'redis://:topsecret@h/', set: {store: redis}}]", 1)))
	require.NoError(t, err)
	variants := f.Tables[1].Variants()
	require.Equal(t, []string{"redis://u:***@h/", "redis://:***@h/"}, []string{variants[0].Name(), variants[1].Name()})
	require.Equal(t, "redis://u:topsecret@h/", variants[0].Values[matrix.KeyStore])
}
