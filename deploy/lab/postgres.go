package lab

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// Postgres is the kind of PostgreSQL servers. Their user is postgres. They need initdb,
// and pg_basebackup for a standby, beside their binary.
var Postgres = &Kind{
	name: "PostgreSQL", binaries: "postgres", debian: "postgresql", homebrew: "postgresql@17",
	account: "postgres", listenSetting: "listen_addresses", binariesVariable: "LAB_POSTGRES_SERVERS",
	engine: func(context.Context, *Server) (engine, error) { return postgresEngine{}, nil },
}

type postgresEngine struct{}

func (postgresEngine) defaults() map[string]string {
	return map[string]string{
		"listen_addresses":           "127.0.0.1",
		"unix_socket_directories":    "",     // no sockets: their paths may be too long
		"dynamic_shared_memory_type": "mmap", // files in the directory, which is removed even after a kill
	}
}

func (postgresEngine) process(s *Server) ProcessConfig {
	args := []string{"-D", s.dir, "-p", strconv.Itoa(s.port)}
	for _, name := range slices.Sorted(maps.Keys(s.settings)) {
		if name != "port" {
			args = append(args, "-c", name+"="+s.settings[name])
		}
	}
	return ProcessConfig{
		Args:       args,
		StopSignal: syscall.SIGINT, // on SIGTERM, it waits until all clients have left
		Ready:      func(ctx context.Context, p *Process) error { return pingPostgres(ctx, s, p.PID()) },
	}
}

func (e postgresEngine) url(s *Server) string { return e.dsn(s, "") }

func (postgresEngine) dsn(s *Server, database string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword("postgres", s.password), Host: s.Addr(), RawQuery: "sslmode=disable"}
	return u.JoinPath(cmp.Or(database, "postgres")).String()
}

// prepare makes a database cluster, copies that of the server to follow, or reads the
// password of an existing one.
func (e postgresEngine) prepare(ctx context.Context, s *Server) error {
	if _, err := os.Stat(filepath.Join(s.dir, "PG_VERSION")); err == nil {
		secret, err := os.ReadFile(secretFile(s.dir))
		if err != nil {
			return fmt.Errorf("start PostgreSQL: the lab did not make the database in %s: %w", s.dir, err)
		}
		s.password = string(secret[bytes.LastIndexByte(secret, ':')+1:])
		return nil
	}
	server, err := s.resolvedBinary()
	if err != nil {
		return fmt.Errorf("find the files of PostgreSQL: %w", err)
	}
	s.password = newPassword()
	program, secret := "initdb", s.password
	args := []string{"-U", "postgres", "--auth=scram-sha-256", "--pwfile=" + secretFile(s.dir), "--encoding=UTF8", "--locale=C"}
	if of := s.standbyOf; of != nil {
		s.password = of.password
		program, secret = "pg_basebackup", "*:*:*:*:"+s.password // libpq reads it now, and the standby later
		conninfo := "postgres://postgres@" + of.Addr() + "/?sslmode=disable&passfile=" + url.PathEscape(secretFile(s.dir))
		args = []string{"--dbname=" + conninfo, "--checkpoint=fast", "--write-recovery-conf"}
	}
	path := filepath.Join(filepath.Dir(server), program)
	if !s.hasFile(path) {
		return fmt.Errorf("%s, beside %s, is %w", program, server, ErrNotInstalled)
	}
	if err := writeSecret(s, secretFile(s.dir), secret); err != nil {
		return err
	}
	// --no-sync: these files need not survive a crash of the machine.
	args = append(args, "-D", s.dir, "--no-sync")
	return runProcess(ctx, ProcessConfig{Path: path, Args: args, User: s.account, container: s.inContainer()})
}

// pingPostgres returns an error unless process pid serves at the server's address. The
// server has its state in a file.
func pingPostgres(ctx context.Context, s *Server, pid int) error {
	file := filepath.Join(s.dir, "postmaster.pid")
	if err := checkPIDFile(file, pid); err != nil {
		return err
	}
	if state := line(file, 8); state != "ready" && state != "standby" {
		return fmt.Errorf("the server is %q", state)
	}
	const sslRequest = 80877103 // every server answers it with one byte
	request := binary.BigEndian.AppendUint32(nil, 8)
	_, err := exchange(ctx, s.Addr(), binary.BigEndian.AppendUint32(request, sslRequest), 1)
	return err
}
