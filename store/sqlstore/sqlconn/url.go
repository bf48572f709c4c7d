package sqlconn

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"

	"sagabench/internal/tlsfiles"
)

// Server is what a URL says of a server: one of the two configurations is set.
type Server struct {
	MySQL    *mysql.Config
	Postgres *pgx.ConnConfig
	Address  string // for messages, without the password
	Database string // of MariaDB and MySQL; may be empty
}

// ValidSchema matches the names that a schema, or a database of MySQL, may have.
var ValidSchema = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,31}$`)

// ParseURL parses mysql://… and postgres://…, as package sqlstore's Config describes
// them. No error quotes the URL, which contains the password.
func ParseURL(text string) (s Server, err error) {
	withFiles := text
	text, files := tlsfiles.CutURL(text)
	u, err := url.Parse(text)
	if err != nil {
		return s, errors.New("want mysql:// or postgres://user:password@host:port/database, with what is special in a password as %XX")
	}
	switch {
	case u.Scheme != "mysql" && u.Scheme != "postgres" && u.Scheme != "postgresql":
		return s, fmt.Errorf("scheme: %q, want mysql or postgres", u.Scheme)
	case u.Hostname() == "":
		return s, errors.New("host: there is none")
	case u.User.Username() == "":
		return s, errors.New("user: there is none")
	case u.Fragment != "":
		return s, errors.New("fragment: there is no use for one")
	}
	if u.Scheme == "mysql" {
		s.Address, s.Database = "mysql at "+u.Host, strings.TrimPrefix(u.Path, "/")
		if s.Database != "" && !ValidSchema.MatchString(s.Database) {
			return s, fmt.Errorf("database: %q, want 1 to 32 of a-z 0-9 _, no digit first", s.Database)
		}
		s.MySQL, err = parseMySQL(u, files)
		return s, err
	}
	s.Address = "postgres at " + u.Host
	s.Postgres, err = parsePostgres(u, withFiles)
	return s, err
}

func parseMySQL(u *url.URL, files tlsfiles.Files) (cfg *mysql.Config, err error) {
	cfg = mysql.NewConfig()
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.Net = "tcp"
	cfg.Addr = u.Host
	if u.Port() == "" {
		cfg.Addr = net.JoinHostPort(u.Hostname(), "3306")
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
	return cfg, nil
}

// parsePostgres parses text, the whole URL: the client has the same names for the files.
func parsePostgres(u *url.URL, text string) (*pgx.ConnConfig, error) {
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
	return cfg, nil
}
