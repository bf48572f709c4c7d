package sqlconn

import (
	"errors"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

// HasNumber reports whether err is an error of MariaDB or MySQL with this number.
func HasNumber(err error, number uint16) bool {
	refused, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && refused.Number == number
}

// HasCode reports whether err is an error of PostgreSQL with this code.
func HasCode(err error, code string) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refused.Code == code
}

// OneLine joins the lines of an error: a client may list its attempts one per line.
type OneLine struct{ Err error }

// Error implements error.
func (e OneLine) Error() string { return strings.Join(strings.Fields(e.Err.Error()), " ") }

// Unwrap returns the error itself.
func (e OneLine) Unwrap() error { return e.Err }
