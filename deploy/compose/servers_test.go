package compose_test

import (
	"cmp"
	"database/sql"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/internal/race"
	"sagabench/store"
	"sagabench/store/open"
)

// settings returns what a command line sets: --name value, --name=value, --name and -c
// name=value.
func settings(t *testing.T, command []string) map[string]string {
	t.Helper()
	set := make(map[string]string)
	for i := 0; i < len(command); i++ {
		word := command[i]
		if word == "-c" {
			i++
			word = "--" + command[i]
		}
		name, isSetting := strings.CutPrefix(word, "--")
		if !isSetting {
			require.Zero(t, i, "%q is no setting", word)
			continue // the program
		}
		name, value, hasValue := strings.Cut(name, "=")
		if !hasValue && i+1 < len(command) && !strings.HasPrefix(command[i+1], "-") {
			i++
			value = command[i]
		}
		set[name] = value
	}
	return set
}

// mysqlSettings have the names that the lab wants.
func mysqlSettings(set map[string]string) map[string]string {
	named := make(map[string]string, len(set))
	for name, value := range set {
		named[strings.ReplaceAll(name, "-", "_")] = value
	}
	return named
}

func class(t *testing.T, server *lab.Server) store.Durability {
	t.Helper()
	return classWith(t, server, open.DefaultConfig())
}

func classWith(t *testing.T, server *lab.Server, cfg open.Config) store.Durability {
	t.Helper()
	target, err := open.Parse(server.URL(), cfg)
	require.NoError(t, err)
	var s store.Store
	require.EventuallyWithT(t, func(c *assert.CollectT) { // the nodes of a cluster find it complete one after the other
		s, err = target.Fresh().Open(t.Context())
		assert.NoError(c, err)
	}, time.Minute, 50*time.Millisecond)
	defer s.Close()
	got, err := s.Settings(t.Context())
	require.NoError(t, err)
	if dropper, ok := s.(store.Dropper); ok {
		require.NoError(t, dropper.Drop(t.Context()))
	}
	return got.Durability
}

func TestRedis_ServersAreInTheClassOfTheFile(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	redis := load(t, "redis.yml")
	command := redis.Services["redis7"].Command
	for _, s := range redis.Services {
		require.Equal(t, command, s.Command)
	}
	require.Equal(t, command, load(t, "app-hosts.yml").Services["redis"].Command)
	server := labtest.Start(t, lab.Redis, lab.Config{Settings: settings(t, command)})
	require.Equal(t, store.D3, class(t, server))
}

func TestMySQL_ServersAreInTheClassOfTheFile(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	mysql := load(t, "mysql.yml")
	set := settings(t, mysql.Services["mysql"].Command)
	require.Equal(t, set, settings(t, mysql.Services["mariadb"].Command))
	server := labtest.Start(t, lab.MySQL, lab.Config{Settings: mysqlSettings(set)})
	require.Equal(t, store.D3, class(t, server))
}

// run runs the script of a service, sh -c, with other addresses and files.
func run(t *testing.T, script []string, account string, env []string, replace ...string) {
	t.Helper()
	require.Equal(t, []string{"sh", "-c"}, script[:2])
	text := strings.ReplaceAll(script[2], "$$", "$")
	for i := 0; i < len(replace); i += 2 {
		require.Contains(t, text, replace[i])
	}
	p, err := lab.StartProcess(t.Context(), lab.ProcessConfig{
		Path: "/bin/sh", Args: []string{"-c", strings.NewReplacer(replace...).Replace(text)},
		User: account, Env: append(os.Environ(), env...), Dir: "/",
	})
	require.NoError(t, err)
	defer time.AfterFunc(time.Minute, p.Kill).Stop()
	require.NoError(t, p.Wait(), p.Log())
}

// wait waits until a health check passes.
func wait(t *testing.T, check string, env []string) {
	t.Helper()
	run(t, []string{"sh", "-c", "until (" + check + "\n); do sleep 0.1; done"}, "", env)
}

func TestRedisCluster_IsMadeOfMastersWithReplicas(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	cluster := load(t, "redis-cluster.yml")
	set := map[string]string{"requirepass": "secret", "masterauth": "secret"}
	for line := range strings.Lines(cluster.Configs["redis.conf"].Content) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			set[name] = strings.Trim(value, `"`)
		}
	}
	var replace []string
	var first *lab.Server
	for i := range 6 {
		s := cluster.Services["node"+strconv.Itoa(i+1)]
		port := s.Command[len(s.Command)-1]
		require.Equal(t, []string{"redis-server", "/redis.conf", "--port", port}, s.Command)
		require.Equal(t, port, s.Environment["PORT"])
		node := labtest.Start(t, lab.Redis, lab.Config{Settings: set})
		first = cmp.Or(first, node)
		_, own, _ := strings.Cut(node.Addr(), ":")
		replace = append(replace, port, own)
	}
	auth := []string{"REDISCLI_AUTH=secret"}
	s := cluster.Services["cluster"]
	run(t, s.Command, "", auth, append(replace, "exec sleep infinity", "")...)
	wait(t, strings.NewReplacer(replace...).Replace(s.Healthcheck.Test[1]), auth)
	require.Equal(t, store.D3, class(t, first))
	cfg := open.DefaultConfig()
	cfg.Redis.Replicas = 1
	require.Equal(t, store.D4, classWith(t, first, cfg))
	// Nothing is made again when the nodes come back.
	run(t, s.Command, "", auth, append(replace, "exec sleep infinity", "")...)
}

func TestPostgres_StandbyHasEachCommit(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	postgres := load(t, "postgres.yml")
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755)) // the server runs as another user
	hba, password := filepath.Join(dir, "pg_hba.conf"), filepath.Join(dir, "password")
	require.NoError(t, os.WriteFile(hba, []byte(postgres.Configs["pg_hba.conf"].Content), 0o644))

	set := settings(t, postgres.Services["primary"].Command)
	set["hba_file"] = hba
	primary := labtest.Start(t, lab.Postgres, lab.Config{Settings: set})
	require.NoError(t, os.WriteFile(password, []byte(primary.Password()+"\n"), 0o644))

	copied := filepath.Join(dir, "standby")
	require.NoError(t, os.Mkdir(copied, 0o700))
	account := ""
	if os.Getuid() == 0 {
		account = "postgres"
		require.NoError(t, chown(account, copied))
	}
	host, port, _ := strings.Cut(primary.Addr(), ":")
	script := postgres.Services["standby"].Command
	run(t, script, account, []string{"PGDATA=" + copied},
		"host=primary", "host="+host+" port="+port, "/run/secrets/password", password, "exec docker-entrypoint.sh", "exec echo")
	require.NoError(t, os.WriteFile(copied+".secret", []byte(primary.Password()), 0o600))

	_, own, _ := strings.Cut(script[2], "exec docker-entrypoint.sh ")
	set = settings(t, strings.Fields(own))
	set["hba_file"] = hba
	standby := labtest.Start(t, lab.Postgres, lab.Config{Dir: copied, Settings: set})
	_, port, _ = strings.Cut(standby.Addr(), ":")
	health := strings.ReplaceAll(postgres.Services["standby"].Healthcheck.Test[1], "psql ", "psql --port="+port+" ")
	wait(t, health, nil)
	require.Equal(t, store.D4, class(t, primary))
}

func TestGalera_NodesAreInTheClassOfTheFile(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	galera := load(t, "galera.yml")
	script := galera.Services["node1"].Command
	require.Equal(t, script, galera.Services["node2"].Command)
	require.Equal(t, script, galera.Services["node3"].Command)
	_, flags, _ := strings.Cut(script[2], "mariadbd $$new ")
	set := mysqlSettings(settings(t, strings.Fields(strings.ReplaceAll(flags, "\\\n", ""))))
	require.Equal(t, "gcomm://node1,node2,node3", set["wsrep_cluster_address"])
	set["wsrep_new_cluster"], set["wsrep_cluster_address"] = "", "gcomm://"
	set["wsrep_node_address"] = "127.0.0.1"
	set["wsrep_provider_options"] = "gmcast.listen_addr=tcp://127.0.0.1:0"
	server := labtest.Start(t, lab.MySQL, lab.Config{Settings: set})
	require.Equal(t, store.D3, class(t, server))
	db, err := sql.Open("mysql", server.DSN(""))
	require.NoError(t, err)
	defer db.Close()
	var name, ready string
	require.NoError(t, db.QueryRowContext(t.Context(), "SHOW STATUS LIKE 'wsrep_ready'").Scan(&name, &ready))
	require.Equal(t, "ON", ready)
}

func TestGalera_FirstNodeMakesACluster_UnlessItWasInOne(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	script := load(t, "galera.yml").Services["node1"].Command
	for state, makes := range map[string]bool{"": true, "safe_to_bootstrap: 1": true, "safe_to_bootstrap: 0": false} {
		for first, asked := range map[string]bool{"FIRST=yes": true, "FIRST=": false} {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "grastate.dat"), []byte(state), 0o600))
			command := filepath.Join(dir, "command")
			run(t, script, "", []string{first}, "/var/lib/mysql", dir, "exec docker-entrypoint.sh", "exec >"+command+" echo")
			text, err := os.ReadFile(command)
			require.NoError(t, err)
			require.Equal(t, makes && asked, strings.Contains(string(text), "--wsrep-new-cluster"), state+" "+first)
		}
	}
}

// chown gives a directory to an account.
func chown(account, dir string) error {
	u, err := user.Lookup(account)
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return err
	}
	return os.Chown(dir, uid, -1)
}
