package cli

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/internal/config"
	"sagabench/internal/race"
	"sagabench/internal/secret"
)

// Wrong input is answered by one line that names what is wrong, another exit
// code than 0, and nothing written.
func TestMain_RefusesWrongInput(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	secured := labtest.Start(t, lab.Redis, lab.Config{Settings: map[string]string{"requirepass": "topsecret"}})
	evicting := labtest.Start(t, lab.Redis, lab.Config{Settings: map[string]string{"maxmemory-policy": "allkeys-lru"}})
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { taken.Close() }) // the parallel tests outlive this function
	unknownKey := filepath.Join(t.TempDir(), "unknown.yml")
	require.NoError(t, os.WriteFile(unknownKey, []byte("redis:\n  prefiks: x\n"), 0o666))
	badValue := filepath.Join(t.TempDir(), "bad.yml")
	require.NoError(t, os.WriteFile(badValue, []byte("coordinator:\n  lease: soon\n"), 0o666))
	bareRetention := filepath.Join(t.TempDir(), "retention.yml")
	require.NoError(t, os.WriteFile(bareRetention, []byte("store: {retention: 3600}\n"), 0o666))
	bareDuration := filepath.Join(t.TempDir(), "duration.yml")
	require.NoError(t, os.WriteFile(bareDuration, []byte("load: {duration: 1.5}\n"), 0o666))
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o666))
	mysql, postgres := mysqlKind.server(t), postgresKind.server(t)
	asClerk := func(k *sqlKind, server *lab.Server, password, database string) string {
		return k.login(server, "clerk", password, database, k.plain())
	}

	for name, tt := range map[string]struct {
		args []string
		env  string
		says string
	}{
		"unknown store":          {[]string{"mongodb"}, "", `"mongodb" is unknown: want pebble`},
		"unknown store, run":     {[]string{"run", "mongodb"}, "", `"mongodb" is unknown: want pebble`},
		"no store":               {[]string{"capacity"}, "", "want one store"},
		"two stores":             {[]string{"run", "redis", "pebble"}, "", "want one store"},
		"unreachable Redis":      {[]string{"run", "redis://127.0.0.1:1"}, "", "redis at 127.0.0.1:1: dial"},
		"unreachable, serve":     {[]string{"redis://127.0.0.1:1", "--listen", "127.0.0.1:0"}, "", "redis at 127.0.0.1:1: dial"},
		"no password":            {[]string{"run", "redis://" + secured.Addr()}, "", "NOAUTH"},
		"wrong password":         {[]string{"run", "redis://:topsecreX@" + secured.Addr()}, "", "WRONGPASS"},
		"wrong URL":              {[]string{"run", "redis://:topsecreX@[host"}, "", "redis://[user:password@]host:port"},
		"unreachable MySQL":      {[]string{"run", "mysql://root@127.0.0.1:1/"}, "", "mysql at 127.0.0.1:1: dial"},
		"unreachable PostgreSQL": {[]string{"run", "postgres://me:topsecret@127.0.0.1:1/db"}, "", "postgres at 127.0.0.1:1: "},
		"wrong password, MySQL":  {[]string{"run", asClerk(mysqlKind, mysql, "topsecreX", "")}, "", "Access denied for user 'clerk'"},
		"wrong password, Postgr": {[]string{"run", asClerk(postgresKind, postgres, "topsecreX", "postgres")}, "", `password authentication failed for user "clerk"`},
		"no CREATE, MySQL":       {[]string{"run", asClerk(mysqlKind, mysql, "topsecret", "")}, "", "the user needs CREATE, SELECT, INSERT, UPDATE and DELETE on the database, and for bench run DROP"},
		"no CREATE, PostgreSQL":  {[]string{"run", asClerk(postgresKind, postgres, "topsecret", "postgres")}, "", "the user needs CREATE on the database"},
		"no CREATE, serve":       {[]string{asClerk(mysqlKind, mysql, "topsecret", "theirs"), "--listen", "127.0.0.1:0"}, "", "the user needs CREATE"},
		"no database":            {[]string{"run", postgresKind.login(postgres, "postgres", postgres.Password(), "not_there", "sslmode=disable")}, "", `database "not_there" does not exist`},
		"no user":                {[]string{"run", "mysql://" + mysql.Addr() + "/"}, "", "user: there is none"},
		"no server said, MySQL":  {[]string{"run", "mysql"}, "", "mysql: which server? Set mysql.url"},
		"no server said, Postgr": {[]string{"serve", "postgres"}, "", "postgres: which server? Set postgres.url"},
		"unknown scheme":         {[]string{"run", "mariadb://root:topsecret@" + mysql.Addr()}, "", `"mariadb" is unknown: want pebble`},
		"a DSN":                  {[]string{"run", "root:topsecret@tcp(" + mysql.Addr() + ")/"}, "", `"root" is unknown: want pebble`},
		"unknown option, MySQL":  {[]string{"run", mysql.URL() + "?charset=utf8"}, "", `option: "charset", there are tls, sslrootcert, sslcert and sslkey`},
		"bad option, MySQL":      {[]string{"run", mysql.URL() + "?tls=perhaps"}, "", `tls: "perhaps", want true, false, skip-verify or preferred`},
		"unknown option, Redis":  {[]string{"run", "redis://:topsecret@h?foo=1"}, "", "redis: invalid request: url: option foo is unknown"},
		"bad option, PostgreSQL": {[]string{"run", "postgres://me:topsecret@h/db?sslmode=perhaps"}, "", "sslmode"},
		"bad URL, MySQL":         {[]string{"run", "mysql://root:topsecre%X@h/"}, "", "as %XX"},
		"bad schema":             {[]string{"serve", mysql.URL()}, "SAGABENCH_SQL_SCHEMA=a-b", `schema: "a-b"`},
		"no TLS there":           {[]string{"run", mysql.URL() + "?tls=true"}, "", "TLS"},
		"set without start":      {[]string{"run", mysql.URL(), "--set", "sync_binlog=1"}, "", "--set: it is for a server that --start starts"},
		"start at an address":    {[]string{"run", mysql.URL(), "--start"}, "", "--start: it starts a server of its own"},
		"set without a value":    {[]string{"run", "mysql", "--start", "--set", "sync_binlog"}, "", `--set: "sync_binlog", want NAME=VALUE`},
		"set without a name":     {[]string{"run", "mysql", "--start", "--set", "=1"}, "", `--set: "=1", want NAME=VALUE`},
		"set of many lines":      {[]string{"run", "redis", "--start", "--set", "a\nb=1"}, "", "want NAME=VALUE"},
		"set a place, Redis":     {[]string{"run", "redis", "--start", "--set", "dir=/dev/shm"}, "", "--set: dir: where its files are is not to be set"},
		"set a place, MySQL":     {[]string{"run", "mysql", "--start", "--set", "innodb-log-group-home-dir=/dev/shm"}, "", "--set: innodb_log_group_home_dir: where"},
		"nodes without start":    {[]string{"run", "redis", "--nodes", "3"}, "", "--nodes and --replicas are for servers that --start starts; for a Redis Cluster of yours, give the URL"},
		"no nodes":               {[]string{"capacity", "redis", "--start", "--nodes", "0"}, "", "--nodes: 0, must be 1 to 16"},
		"nodes of a variant":     {[]string{"compare", "redis --start", "mysql --start --nodes 3"}, "", "variant B: --nodes is for a Redis Cluster: --start starts one mysql, and with --replicas 1 also a replica"},
		"set twice":              {[]string{"run", "mysql", "--start", "--set", "sync-binlog=1", "--set", "sync_binlog=0"}, "", "--set: sync_binlog is set twice"},
		"unknown setting, Redis": {[]string{"run", "redis", "--start", "--set", "no-such=1"}, "", "no-such"},
		"unknown setting, MySQL": {[]string{"run", "mysql", "--start", "--set", "no_such=1"}, "", "unknown variable 'no_such=1'"},
		"bad setting, PostgreSQ": {[]string{"run", "postgres", "--start", "--set", "synchronous_commit=perhaps"}, "", `invalid value for parameter "synchronous_commit": "perhaps"`},
		"evicting Redis":         {[]string{"run", evicting.URL()}, "", "maxmemory-policy is allkeys-lru"},
		"port in use":            {[]string{"serve", "pebble", "--listen", taken.Addr().String()}, "", taken.Addr().String() + " is in use"},
		"public address":         {[]string{"serve", "pebble", "--listen", "0.0.0.0:0"}, "", "needs a token"},
		"public, coordinator":    {[]string{"coordinator", "pebble", "--listen", ":0"}, "", "set SAGABENCH_SERVER_TOKEN"},
		"empty token":            {[]string{"coordinator", "pebble", "--listen", ":0"}, "SAGABENCH_SERVER_TOKEN=", "needs a token"},
		"short token":            {[]string{"coordinator", "pebble", "--listen", ":0"}, "SAGABENCH_SERVER_TOKEN=topsecret", "at least 16"},
		"no connections":         {[]string{"coordinator", "pebble", "--listen", "127.0.0.1:0"}, "SAGABENCH_SERVER_MAX_CONNS=0", "max conns: 0"},
		"retry interval":         {nil, "SAGABENCH_COORDINATOR_MAX_RETRY_INTERVAL=0s", "max retry interval: 0s"},
		"no such address":        {[]string{"serve", "pebble", "--listen", "nonsense"}, "", "want HOST:PORT"},
		"bad duration":           {[]string{"--duration", "tomorrow"}, "", "--duration"},
		"no duration":            {[]string{"--duration", "0s"}, "", "duration"},
		"bad rate":               {[]string{"--rate", "fast"}, "", `rate: "fast": "fast" is no rate; want requests per time, as 500/s`},
		"negative rate":          {[]string{"--rate", "-1/s"}, "", "rate"},
		"rate of none":           {[]string{"--rate", "0/s"}, "", `rate: "0/s": rate 0/s: must be more than 0`},
		"a step of none":         {[]string{"--rate", "10/s,0/s"}, "", `rate: "10/s,0/s": rate 0/s: must be more than 0`},
		"half a ramp":            {[]string{"--rate", "500/s.."}, "", `rate: "500/s.."`},
		"closed loop, arrival":   {[]string{"--arrival", "foo"}, "", `arrival: "foo", must be constant or poisson`},
		"a bare retention":       {[]string{"--config", bareRetention}, "", "3600 has no unit: write 3600s for seconds"},
		"a bare duration":        {[]string{"--config", bareDuration}, "", "1.5 has no unit"},
		"@ in a password":        {[]string{"run", "postgres://u:topse@cre/topsecret@127.0.0.1:1/d"}, "", "write special characters in a user or password as %XX"},
		"@ in a password, Redis": {[]string{"check", "redis://:topse@cre/topsecret@127.0.0.1:1"}, "", "write special characters in a user or password as %XX"},
		"run, nobody there":      {[]string{"run", "redis"}, "SAGABENCH_REDIS_URL=redis://127.0.0.1:1", "redis --start starts one for the run"},
		"capacity, nobody there": {[]string{"capacity", "redis"}, "SAGABENCH_REDIS_URL=redis://127.0.0.1:1", "redis --start starts one for the run"},
		"load, dead dtm":         {[]string{"load", "--target", "http://127.0.0.1:1", "--protocol", "dtm"}, "", "connection refused"},
		"check, no directory":    {[]string{"check", "pebble:nowhere"}, "", "there is no store of sagas here"},
		"check, default dir":     {[]string{"check", "pebble"}, "", "there is no store of sagas here"},
		"no such arrival":        {[]string{"--rate", "1/s", "--arrival", "bursts"}, "", `arrival: "bursts", must be constant or poisson`},
		"nothing in flight":      {[]string{"--in-flight", "0"}, "", "in flight: 0"},
		"no place in flight":     {[]string{"--rate", "1/s", "--max-in-flight", "0"}, "", "max in flight: 0, must be at least 1"},
		"no place for a search":  {[]string{"capacity", "pebble", "--max-in-flight", "0"}, "", "max in flight: 0, must be at least 1"},
		"no steps":               {[]string{"--steps", "0"}, "", "steps: 0, must be 1 to 1000"},
		"too many steps":         {[]string{"--steps", "1001"}, "", "steps: 1001, must be 1 to 1000"},
		"branches":               {[]string{"--branches", "some"}, "", `branches: "some"`},
		"payload":                {[]string{"--payload", "-1"}, "", "payload: -1"},
		"fail":                   {[]string{"--fail", "2"}, "", "fail: 2"},
		"unknown flag":           {[]string{"--fast"}, "", "--fast"},
		"unknown config key":     {[]string{"--config", unknownKey}, "", `unknown key "redis.prefiks"`},
		"bad config value":       {[]string{"--config", badValue}, "", "coordinator.lease"},
		"no config file":         {[]string{"--config", "nowhere.yml"}, "", "nowhere.yml"},
		"unknown variable":       {nil, "SAGABENCH_REDIS_PREFIKS=x", "SAGABENCH_REDIS_PREFIKS"},
		"bad variable":           {nil, "SAGABENCH_REDIS_SHARDS=many", "redis.shards"},
		"lease too short":        {nil, "SAGABENCH_COORDINATOR_LEASE=1s", "lease: 1s"},
		"prefix with braces":     {[]string{"run", "redis"}, "SAGABENCH_REDIS_SHARDS=-1", "shards: -1"},
		"directory is a file":    {[]string{"run", "pebble:" + file}, "", file},
		"out is a file":          {[]string{"--out", file}, "", file},
		"control characters":     {[]string{"report", "a\x1b[31mb"}, "", "bench: a [31mb: no result"},
		"start without server":   {[]string{"run", "pebble", "--start"}, "", "--start"},
		"load without target":    {[]string{"load"}, "", "--target"},
		"load, bad target":       {[]string{"load", "--target", "localhost"}, "", `target "localhost`},
		"load, nobody there":     {[]string{"load", "--target", "http://127.0.0.1:1", "--warmup", "50ms"}, "", "connection refused"},
		"load, a password":       {[]string{"load", "--target", "http://me:topsecret@127.0.0.1:1"}, "", "must not have a password"},
		"load, unknown protocol": {[]string{"load", "--target", "http://127.0.0.1:1", "--protocol", "grpc"}, "", `protocol: "grpc", must be bench or dtm`},
		"load, no branches":      {[]string{"load", "--target", "http://127.0.0.1:1", "--protocol", "dtm", "--fail", "1"}, "", "connection refused"},
		"load, embedded store":   {[]string{"load", "pebble", "--target", "http://127.0.0.1:1"}, "", "held by its bench server"},
		"check, nothing there":   {[]string{"check", "redis://127.0.0.1:1"}, "", "redis at 127.0.0.1:1"},
		"check, unknown option":  {[]string{"check", "pebble", "--fix"}, "", "--fix"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProgram(t)
			if tt.env != "" {
				p.env = []string{tt.env}
			}
			got := p.run(tt.args...)
			require.Equal(t, exitError, got.code, got.stderr)
			last := lastLine(got.stderr)
			require.Contains(t, last, tt.says)
			require.True(t, strings.HasPrefix(last, "bench: "), last)
			require.NotContains(t, got.stderr, "topsecre")
			require.NotContains(t, got.stderr, "goroutine")
			require.Empty(t, got.stdout)
			require.Empty(t, p.files())
		})
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

func TestServe_ASecondServerOnTheSameDirectory(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.serve("pebble", "--listen", "127.0.0.1:0")
	got := p.run("serve", "pebble", "--listen", "127.0.0.1:0")
	require.Equal(t, exitError, got.code)
	require.Contains(t, got.stderr, "in use")
	require.Contains(t, got.stderr, dataDir)
	require.Len(t, strings.Split(strings.TrimSpace(got.stderr), "\n"), 1)
}

func TestServe_RefusesWrongParameters(t *testing.T) {
	t.Parallel()
	s := newProgram(t).serve("pebble", "--listen", "127.0.0.1:0")
	response, err := http.Get(s.url + "/bench/saga?steps=0")
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusBadRequest, response.StatusCode)
}

// The sample lists every setting with its default.
func TestSampleConfig_IsTheDefaults(t *testing.T) {
	t.Parallel()
	o, want := defaults(), defaults()
	// Each setting is set to another value first, so that one that the sample lacks shows.
	for key, setting := range o.settings() {
		switch v := reflect.ValueOf(setting).Elem(); v.Kind() {
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.String:
			v.SetString("another")
		case reflect.Float64:
			v.SetFloat(-1)
		case reflect.Slice:
			v.Set(reflect.ValueOf([]string{"another"}))
		case reflect.Struct:
			v.Set(reflect.ValueOf(secret.New("another")))
		default:
			v.SetInt(-1)
		}
		require.NotEqual(t, want.settings()[key], setting, key)
	}
	require.NoError(t, o.settings().Load("../../../conf.sample.yml", nil))
	for key, setting := range want.settings() {
		require.Equal(t, setting, o.settings()[key], key)
	}
}

func TestOptions_PrintNoSecret(t *testing.T) {
	t.Parallel()
	const password, token = "topsecret", "0123456789abcdef"
	o := defaults()
	require.NoError(t, o.settings().Load("", []string{
		"SAGABENCH_REDIS_URL=redis://:" + password + "@a", "SAGABENCH_SERVER_TOKEN=" + token, "SAGABENCH_SERVER_ADMIN_TOKEN=" + token + "2",
		"SAGABENCH_MYSQL_URL=mysql://u:" + password + "@a", "SAGABENCH_POSTGRES_URL=postgres://u:" + password + "@a/b",
	}))
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		printed := fmt.Sprintf(verb, o)
		require.NotContains(t, printed, password)
		require.NotContains(t, printed, token)
		require.Equal(t, 5, strings.Count(printed, "***"))
	}
}

// Kubernetes would set such a setting, if there is a Service of that name.
func TestSettings_NoneIsNamedAsKubernetesNamesThoseOfServices(t *testing.T) {
	t.Parallel()
	var o options
	for key := range o.settings() {
		for _, value := range []string{"10.96.0.12", "36789", "tcp", "tcp://10.96.0.12:36789"} {
			require.False(t, config.IsServiceVariable(config.Variable(key)+"="+value), key)
		}
	}
}

func TestCommand_HasTheSettingsOfTheEnvironment_WithoutSecrets(t *testing.T) {
	t.Parallel()
	a := app{args: []string{"run", "redis"}, environ: []string{
		"HOME=/home", "SAGABENCH_SERVER_TOKEN=topsecret", "SAGABENCH_REDIS_URL=redis://:topsecret@h:6379/1", "SAGABENCH_MYSQL_URL=me:topsecret@h",
		"SAGABENCH_PEBBLE_SYNC=false", "SAGABENCH_SQL_SCHEMA=it's", "SAGABENCH_REDIS_PREFIX=", "SAGABENCH_SERVICE_HOST=10.0.0.1",
	}}
	require.Equal(t, "SAGABENCH_MYSQL_URL='***' SAGABENCH_PEBBLE_SYNC=false SAGABENCH_REDIS_PREFIX='' SAGABENCH_REDIS_URL='redis://:***@h:6379/1' "+
		`SAGABENCH_SERVER_TOKEN='***' SAGABENCH_SQL_SCHEMA='it'\''s' go run bench/main.go run redis`, a.command())
}
