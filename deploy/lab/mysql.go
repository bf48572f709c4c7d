package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// MySQLConfig says which MariaDB or MySQL to start, and how.
type MySQLConfig struct {
	// Binary is a name on PATH or a path. Empty: mariadbd or mysqld, whichever is
	// first on PATH; mariadbd where one directory has both.
	Binary string

	// Settings are the options of a [mysqld] section, their words joined by
	// underscores: "sync_binlog": "1". An empty value is an option without one:
	// "log_bin": "". They add to and override the defaults: one port of the
	// loopback interface, no binlog; the rest is the server's own default.
	Settings map[string]string

	// Dir is where the server keeps its files; it is made when it does not exist,
	// and filled when there is no database in it. Empty: a temporary directory
	// that Stop removes. When root starts the server, Dir goes to the account
	// that runs it. The password is in a file beside Dir, Dir.secret.
	Dir string

	// SlowSync lets Server.SlowSync delay the server's syncs. It takes Linux and a
	// C compiler.
	SlowSync bool
}

// MySQLServersVariable names the environment variable that lists further MariaDB
// and MySQL binaries for MySQLBinaries, separated as in PATH.
const MySQLServersVariable = "LAB_MYSQL_SERVERS"

const (
	mysqlServers = "mariadbd|mysqld"
	mysqlPIDFile = "lab.pid" // in Dir
)

// MySQLBinaries lists the servers that tests should run against: the one that is
// installed, which is "", then those that MySQLServersVariable names.
func MySQLBinaries() []string {
	return append([]string{""}, listed(MySQLServersVariable)...)
}

// StartMySQL starts a MariaDB or MySQL server and waits until it answers. It lets
// the user root in, from this machine and with the password in [Server.URL]. When
// root starts it, it runs as mysql. The error is ErrNotInstalled without the
// binary, and holds the server's own words when it refuses its settings.
func StartMySQL(ctx context.Context, cfg MySQLConfig) (*Server, error) {
	path, err := lookServer(cmp.Or(cfg.Binary, mysqlServers), "mariadb-server", "mariadb")
	if err != nil {
		return nil, err
	}
	account, err := unprivileged(mysqlAccount)
	if err != nil {
		return nil, fmt.Errorf("start MySQL: %w", err)
	}
	version, err := exec.CommandContext(ctx, path, "--no-defaults", "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for its version: %w", path, err)
	}
	mariaDB := strings.Contains(string(version), "MariaDB")

	settings := map[string]string{
		"bind_address": "127.0.0.1",
		"socket":       "lab.sock", // in Dir; a whole path may be longer than sockets allow
	}
	if mariaDB {
		settings["skip_name_resolve"] = ""
		settings["secure_file_priv"] = "." // Dir; it does not know NULL
	} else { // root is that of localhost, a name: without names it would be let in by the socket only
		settings["disable_log_bin"] = ""
		settings["loose_mysqlx"] = "OFF"      // it would take a port of its own; 5.7 has none
		settings["secure_file_priv"] = "NULL" // no files but its own
	}
	maps.Copy(settings, cfg.Settings)
	port, err := wantedPort("MySQL", settings)
	if err != nil {
		return nil, err
	}

	password := newPassword()

	e := engine{host: dialHost(settings["bind_address"]), port: port, account: account, slowSync: cfg.SlowSync}
	e.url = func(addr string) string { return "mysql://root:" + password + "@" + addr + "/" }
	e.dsn = func(addr, database string) string { return "root:" + password + "@tcp(" + addr + ")/" + database }
	e.prepare = func(ctx context.Context, dir string) error {
		if err := fillMySQL(ctx, path, account, mariaDB, dir); err != nil {
			return err
		}
		return setMySQLPassword(dir, account, password)
	}
	e.command = func(dir string, port int) ProcessConfig {
		return ProcessConfig{
			Path: path,
			Args: mysqlArgs(settings, dir, port),
			Dir:  dir,
			Ready: func(ctx context.Context, p *Process) error {
				return pingMySQL(ctx, hostPort(e.host, port), filepath.Join(dir, mysqlPIDFile), p.PID())
			},
		}
	}
	return startServer(ctx, cfg.Dir, e)
}

// mysqlArgs writes the settings as a command line.
func mysqlArgs(settings map[string]string, dir string, port int) []string {
	args := append(mysqlBasics(dir), tmpdir(dir), "--port="+strconv.Itoa(port))
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		switch value := settings[name]; {
		case name == "port":
		case value == "":
			args = append(args, "--"+name)
		default:
			args = append(args, "--"+name+"="+value)
		}
	}
	return append(args, "--pid-file="+mysqlPIDFile, "--init-file="+secretFile(dir))
}

// mysqlBasics are the options of the server and of what fills its directory.
func mysqlBasics(dir string) []string {
	return []string{"--no-defaults", "--datadir=" + dir}
}

// setMySQLPassword writes the file of statements that the server runs at each
// start, before it listens. Which roots there are depends on the server.
func setMySQLPassword(dir, account, password string) error {
	var statements strings.Builder
	for _, host := range []string{"localhost", "127.0.0.1", "::1"} {
		fmt.Fprintf(&statements, "ALTER USER IF EXISTS root@'%s' IDENTIFIED BY '%s';\n", host, password)
	}
	statements.WriteString("DROP USER IF EXISTS ''@localhost;\n")
	return writeSecret(dir, account, statements.String())
}

// tmpdir keeps a server from /tmp: MariaDB, as it starts, deletes the temporary
// tables of all servers there.
func tmpdir(dir string) string { return "--tmpdir=" + dir }

// fillMySQL makes the system tables in dir, unless they are there.
func fillMySQL(ctx context.Context, server, account string, mariaDB bool, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "mysql")); err == nil {
		return nil
	}
	if !mariaDB {
		args := append(mysqlBasics(dir), "--initialize-insecure", "--secure_file_priv=NULL")
		return runProcess(ctx, ProcessConfig{Path: server, Args: args, Dir: dir, User: account})
	}
	server, err := filepath.EvalSymlinks(server)
	if err != nil {
		return fmt.Errorf("find the files of MariaDB: %w", err)
	}
	base := filepath.Dir(filepath.Dir(server))
	args := append(mysqlBasics(dir), tmpdir(dir), "--basedir="+base,
		"--auth-root-authentication-method=normal", "--skip-test-db",
		// What is written here need not survive this machine's crash; what the
		// server writes does.
		"--debug-no-sync", "--loose-innodb-flush-method=nosync")
	for _, script := range []string{"bin/mariadb-install-db", "scripts/mariadb-install-db", "bin/mysql_install_db", "scripts/mysql_install_db"} {
		if path := filepath.Join(base, script); isFile(path) {
			err := runProcess(ctx, ProcessConfig{Path: path, Args: args, Dir: dir, User: account})
			if failed, ok := errors.AsType[*startError](err); ok {
				// What follows is advice, longer than the reason.
				failed.log, _, _ = strings.Cut(failed.log, "Installation of system tables failed")
			}
			return err
		}
	}
	return fmt.Errorf("mariadb-install-db, beside %s, is %w", server, ErrNotInstalled)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
