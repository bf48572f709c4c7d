package sqlstore

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"

	"sagabench/internal/tlsfiles"
)

// parseURL parses Config.URL. The address is for messages; the database is empty or,
// on MySQL, takes the place of Config.Schema. No error quotes the URL, which contains
// the password.
func parseURL(text string) (d dialect, address, database string, err error) {
	withFiles := text
	text, files := tlsfiles.CutURL(text)
	u, err := url.Parse(text)
	if err != nil {
		return nil, "", "", errors.New("want mysql:// or postgres://user:password@host:port/database, with what is special in a password as %XX")
	}
	switch {
	case u.Scheme != "mysql" && u.Scheme != "postgres" && u.Scheme != "postgresql":
		return nil, "", "", fmt.Errorf("scheme: %q, want mysql or postgres", u.Scheme)
	case u.Hostname() == "":
		return nil, "", "", errors.New("host: there is none")
	case u.User.Username() == "":
		return nil, "", "", errors.New("user: there is none")
	case u.Fragment != "":
		return nil, "", "", errors.New("fragment: there is no use for one")
	}
	if u.Scheme == "mysql" {
		d, err = parseMySQL(u, files)
		return d, "mysql at " + u.Host, strings.TrimPrefix(u.Path, "/"), err
	}
	d, err = parsePostgres(u, withFiles)
	return d, "postgres at " + u.Host, "", err
}

func parseMySQL(u *url.URL, files tlsfiles.Files) (d *mysqlDialect, err error) {
	cfg := mysql.NewConfig()
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.Net = "tcp"
	cfg.Addr = u.Host
	if u.Port() == "" {
		cfg.Addr = net.JoinHostPort(u.Hostname(), "3306")
	}
	database := strings.TrimPrefix(u.Path, "/")
	if database != "" && !validSchema.MatchString(database) {
		return nil, fmt.Errorf("database: %q, want 1 to 32 of a-z 0-9 _, no digit first", database)
	}
	for name, values := range u.Query() {
		if name != "tls" {
			return nil, fmt.Errorf("option: %q, there are tls, sslrootcert, sslcert and sslkey", name)
		}
		cfg.TLSConfig = values[0]
		if !slices.Contains([]string{"true", "false", "skip-verify", "preferred"}, cfg.TLSConfig) {
			return nil, fmt.Errorf("tls: %q, want true, false, skip-verify or preferred", cfg.TLSConfig)
		}
	}
	if cfg.TLS, err = files.MySQL(cfg.TLSConfig); err != nil {
		return nil, err
	}
	return &mysqlDialect{client: cfg}, nil
}

// parsePostgres parses text, the whole URL: the client has the same names for the files.
func parsePostgres(u *url.URL, text string) (*postgresDialect, error) {
	cfg, err := pgx.ParseConfig(text)
	if err != nil {
		// Only an option can still be wrong. The text of err begins with the URL.
		if inner := errors.Unwrap(err); inner != nil {
			err = inner
		}
		message := err.Error()
		if password, _ := u.User.Password(); password != "" {
			message = strings.ReplaceAll(message, password, "***")
		}
		return nil, fmt.Errorf("option: %s", message)
	}
	return &postgresDialect{client: cfg}, nil
}
