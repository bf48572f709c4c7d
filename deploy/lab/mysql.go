package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// MySQL is the kind of MariaDB and MySQL servers: mariadbd or mysqld, whichever is first
// on PATH, and mariadbd if both are in one directory. Their user is root.
var MySQL = &Kind{
	name: "MySQL", binaries: "mariadbd|mysqld", debian: "mariadb-server", homebrew: "mariadb",
	account: "mysql", listenSetting: "bind_address", binariesVariable: "LAB_MYSQL_SERVERS",
	engine: func(ctx context.Context, s *Server) (engine, error) {
		version, err := s.output(ctx, s.binary, "--no-defaults", "--version")
		if err != nil {
			return nil, fmt.Errorf("ask %s for its version: %w", s.binary, err)
		}
		return mysqlEngine{mariaDB: strings.Contains(version, "MariaDB")}, nil
	},
}

type mysqlEngine struct{ mariaDB bool }

const mysqlPIDFile = "lab.pid" // in the server's directory

func (e mysqlEngine) defaults() map[string]string {
	settings := map[string]string{
		"bind_address": "127.0.0.1",
		"socket":       "lab.sock", // in the server's directory; a whole path may be too long
	}
	if e.mariaDB {
		settings["skip_name_resolve"] = ""
		settings["secure_file_priv"] = "." // the server's directory; it does not know NULL
	} else { // without name resolution, root@localhost could log in by the socket only
		settings["disable_log_bin"] = ""
		settings["loose_mysqlx"] = "OFF"      // it would need another port; 5.7 does not have it
		settings["secure_file_priv"] = "NULL" // no files but its own
	}
	return settings
}

func (e mysqlEngine) process(s *Server) ProcessConfig {
	args := append(mysqlBaseArgs(s), "--port="+strconv.Itoa(s.port))
	for _, name := range slices.Sorted(maps.Keys(s.settings)) {
		switch value := s.settings[name]; {
		case name == "port":
		case name == "wsrep_new_cluster" && s.process != nil: // it joins the one that it made
		case value == "":
			args = append(args, "--"+name)
		default:
			args = append(args, "--"+name+"="+value)
		}
	}
	if s.powerLoss { // which does not see what is written by io_uring and libaio
		args = append(args, "--innodb-use-native-aio=0")
	}
	return ProcessConfig{
		Args:  append(args, "--pid-file="+mysqlPIDFile, "--init-file="+secretFile(s.dir)),
		Dir:   s.dir,
		Ready: func(ctx context.Context, p *Process) error { return pingMySQL(ctx, s, p.PID()) },
	}
}

// mysqlBaseArgs returns the arguments of the server and of the program that fills its
// directory. MariaDB deletes the temporary tables of all servers in tmpdir when it
// starts, so tmpdir must not be /tmp.
func mysqlBaseArgs(s *Server) []string {
	return []string{"--no-defaults", "--datadir=" + s.dir, "--tmpdir=" + s.dir}
}

func (mysqlEngine) url(s *Server) string { return "mysql://root:" + s.password + "@" + s.Addr() + "/" }

func (mysqlEngine) dsn(s *Server, database string) string {
	return "root:" + s.password + "@tcp(" + s.Addr() + ")/" + database
}

// prepare makes the system tables if there are none, and writes the statements that set
// the password. The server runs them at each start, before it listens.
func (e mysqlEngine) prepare(ctx context.Context, s *Server) error {
	if _, err := os.Stat(filepath.Join(s.dir, "mysql")); err != nil {
		if err := e.makeSystemTables(ctx, s); err != nil {
			return err
		}
	}
	s.password = newPassword()
	var statements strings.Builder
	if e.mariaDB {
		statements.WriteString("SET sql_log_bin = 0;\n") // a replica has a password of its own
	}
	if s.settings["wsrep_on"] != "" { // a node of Galera would set the passwords of all
		statements.WriteString("SET SESSION wsrep_on=OFF;\n")
	}
	for _, host := range []string{"localhost", "127.0.0.1", "::1"} { // which exist depends on the server
		fmt.Fprintf(&statements, "ALTER USER IF EXISTS root@'%s' IDENTIFIED BY '%s';\n", host, s.password)
	}
	statements.WriteString("DROP USER IF EXISTS ''@localhost;\n")
	return writeSecret(s, secretFile(s.dir), statements.String())
}

func (e mysqlEngine) makeSystemTables(ctx context.Context, s *Server) error {
	if !e.mariaDB {
		args := append(mysqlBaseArgs(s), "--initialize-insecure", "--secure_file_priv=NULL")
		return runProcess(ctx, ProcessConfig{Path: s.binary, Args: args, Dir: s.dir, User: s.account, container: s.inContainer()})
	}
	server, err := s.resolvedBinary()
	if err != nil {
		return fmt.Errorf("find the files of MariaDB: %w", err)
	}
	base := filepath.Dir(filepath.Dir(server))
	args := append(mysqlBaseArgs(s), "--basedir="+base,
		"--auth-root-authentication-method=normal", "--skip-test-db",
		// These files need not survive a crash of the machine. The server's own do.
		"--debug-no-sync", "--loose-innodb-flush-method=nosync")
	for _, script := range []string{"bin/mariadb-install-db", "scripts/mariadb-install-db", "bin/mysql_install_db", "scripts/mysql_install_db"} {
		if path := filepath.Join(base, script); s.hasFile(path) {
			err := runProcess(ctx, ProcessConfig{Path: path, Args: args, Dir: s.dir, User: s.account, container: s.inContainer()})
			if failed, ok := errors.AsType[*startError](err); ok { // cut off the advice, which is longer than the reason
				failed.log, _, _ = strings.Cut(failed.log, "Installation of system tables failed")
			}
			return err
		}
	}
	return fmt.Errorf("mariadb-install-db, beside %s, is %w", server, ErrNotInstalled)
}

// pingMySQL returns an error unless process pid serves at the server's address. The
// server writes its id to a file when it has the port, and greets clients that it
// accepts.
func pingMySQL(ctx context.Context, s *Server, pid int) error {
	if err := checkPIDFile(filepath.Join(s.dir, mysqlPIDFile), pid); err != nil {
		return err
	}
	greeting, err := exchange(ctx, s.Addr(), nil, 5)
	if err != nil {
		return err
	}
	const protocol = 10
	if greeting[4] != protocol { // after the length and number of the packet
		return fmt.Errorf("%s greets with %q", s.Addr(), greeting)
	}
	return nil
}
