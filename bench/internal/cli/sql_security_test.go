package cli

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/internal/testkit"
)

// documentedSQL gives the blocks of SQL in a part of the documentation.
func documentedSQL(t *testing.T, heading string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/operations.md")
	require.NoError(t, err)
	_, part, found := strings.Cut(string(text), "\n## "+heading+"\n")
	require.True(t, found)
	part, _, _ = strings.Cut(part, "\n## ")
	for _, block := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(part, -1) {
		blocks = append(blocks, strings.ReplaceAll(block[1], "'PASSWORD'", "'"+password+"'"))
	}
	return blocks
}

func statements(block string) (all []string) {
	for statement := range strings.SplitSeq(block, ";") {
		if statement = strings.TrimSpace(statement); statement != "" {
			all = append(all, statement)
		}
	}
	return all
}

func TestSQLServers_WithTLS(t *testing.T) {
	forEachSQL(t, func(t *testing.T, k *sqlKind) {
		server, authority := k.withTLS(t)
		t.Run("documented users", func(t *testing.T) { k.requireDocumentedUsers(t, server, authority) })
		t.Run("client certificates", func(t *testing.T) {
			strict := "tls=true"
			create := []string{
				"CREATE USER certified IDENTIFIED BY '" + password + "' REQUIRE X509",
				"GRANT CREATE, DROP, SELECT, INSERT, UPDATE, DELETE, PROCESS ON *.* TO certified",
			}
			database := ""
			if k == postgresKind {
				strict, database = "sslmode=verify-full", "postgres"
				create = []string{"CREATE ROLE certified LOGIN PASSWORD '" + password + "'", "GRANT CREATE ON DATABASE postgres TO certified"}
			}
			execute(t, k.admin(t, server), create...)
			requireCertificates(t, authority, k.login(server, "certified", password, database, ""), strict)
		})
	})
}

// requireDocumentedUsers makes sure that the users that the documentation gives can do what the
// program does, over TLS, and no more; a run by one of them leaves nothing behind, and no
// password anywhere.
func (k *sqlKind) requireDocumentedUsers(t *testing.T, server *lab.Server, authority *testkit.Authority) {
	admin := k.admin(t, server)
	heading, database, strict := "MariaDB and MySQL", "", "tls=true"
	if k == postgresKind {
		heading, database, strict = "PostgreSQL", "sagabench", "sslmode=verify-full"
	}
	blocks := documentedSQL(t, heading)
	execute(t, admin, statements(blocks[0])...)
	env := "SAGABENCH_" + strings.ToUpper(k.name) + "_URL=" + k.login(server, "sagabench", password, database, strict)

	stranger := newProgram(t, env).run("check", k.name)
	require.Equal(t, exitError, stranger.code)
	require.Contains(t, stranger.stderr, "certificate")

	p := newProgram(t, env, "SSL_CERT_FILE="+authority.CA)
	s := p.start("coordinator", k.name, "--listen", "127.0.0.1:0")
	_, out := p.load(k.name, "--protocol", "dtm", "--target", s.url)
	require.NotContains(t, out.stdout+out.stderr, "topsecret")
	status, _ := fetch(t, s.url+"/ui", "")
	require.Equal(t, http.StatusOK, status)
	s.stop()
	require.Empty(t, s.err.String())
	require.Equal(t, exitOK, p.run("check", k.name).code)

	if len(blocks) > 1 {
		refused := p.run("run", k.name)
		require.Equal(t, exitError, refused.code)
		require.Contains(t, refused.stderr, "for bench run DROP")
		execute(t, admin, statements(blocks[1])...)
	}
	got := p.run("run", k.name, "--duration", "300ms", "--warmup", "100ms")
	got.requireRan(t)
	require.NotContains(t, got.stdout, "denied")
	require.NotContains(t, got.stdout+got.stderr, "topsecret")
	p.requireNoSecrets()

	dsn := k.login(server, "sagabench", password, database, "")
	if k == mysqlKind {
		require.Equal(t, []string{"sagabench"}, schemas(t, admin, "sagabench%"))
		dsn = "sagabench:" + password + "@tcp(" + server.Addr() + ")/sagabench?tls=skip-verify"
	}
	user := k.connect(t, dsn)
	require.NoError(t, user.PingContext(t.Context()))
	for _, statement := range []string{"CREATE DATABASE theirs", "CREATE USER other", "SET GLOBAL sync_binlog = 0", "ALTER SYSTEM SET fsync = off"} {
		_, err := user.ExecContext(t.Context(), statement)
		require.Error(t, err, statement)
	}
}

// withTLS starts a server that asks all but the admin for TLS, and certified for a certificate.
func (k *sqlKind) withTLS(t *testing.T) (*lab.Server, *testkit.Authority) {
	t.Helper()
	authority := testkit.NewAuthority(t)
	cert, key := authority.Issue("server")
	settings := map[string]string{"ssl_cert": cert, "ssl_key": key, "ssl_ca": authority.CA}
	if k == postgresKind {
		hba := filepath.Join(filepath.Dir(key), "pg_hba.conf")
		rules := "host all postgres all scram-sha-256\nhostssl all certified all scram-sha-256 clientcert=verify-ca\nhostssl all all all scram-sha-256\n"
		require.NoError(t, os.WriteFile(hba, []byte(rules), 0o644))
		settings = map[string]string{"ssl": "on", "ssl_cert_file": cert, "ssl_key_file": key, "ssl_ca_file": authority.CA, "hba_file": hba}
	}
	handOver(t, filepath.Dir(key), k.name)
	maps.Copy(settings, k.withoutSync())
	return k.own(t, settings), authority
}

func TestApp_CommandShowsNoSecretSetting(t *testing.T) {
	t.Parallel()
	a := app{args: []string{
		"run", "redis", "--start", "--set", "requirepass=topsecret", "--set=masterauth=topsecret", "--set", "user=a >topsecret", "--set", "appendonly=yes",
	}}
	require.Equal(t, "go run bench/main.go run redis --start --set 'requirepass=***' '--set=masterauth=***' --set 'user=***' --set appendonly=yes", a.command())
	a = app{args: []string{"load", "postgres://me@h/db?sslmode=disable&password=topsecret", "--target", "http://a"}}
	require.NotContains(t, a.command(), "topsecret")
	require.Contains(t, a.command(), "sslmode=disable")
	for _, flag := range [][]string{{"--target", "http://a:1,http://b:2"}, {"--target=http://a:1,http://b:2"}} {
		require.Equal(t, "go run bench/main.go load "+strings.Join(flag, " "), (&app{args: append([]string{"load"}, flag...)}).command())
	}
	a = app{args: []string{"load", "--target=http://a:1,http://me:topsecret@b"}}
	require.Equal(t, "go run bench/main.go load '--target=http://a:1,http://me:***@b'", a.command())
}
