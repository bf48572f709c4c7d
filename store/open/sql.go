package open

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"sagabench/internal/secret"
	"sagabench/store"
	"sagabench/store/sqlstore"
)

// openSQL opens the store. If the server denies something, the error says which
// rights the user needs.
func openSQL(ctx context.Context, c Config, url secret.Text) (store.Store, error) {
	cfg := c.SQL
	cfg.URL, cfg.Retention, cfg.MustExist, cfg.Log, cfg.Lease = url.Reveal(), c.Retention, c.MustExist, c.Log, c.Lease
	s, err := sqlstore.Open(ctx, cfg)
	if err == nil {
		return s, nil
	}
	const deniedDatabase, deniedTable = 1044, 1142
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok && slices.Contains([]uint16{deniedDatabase, deniedTable}, e.Number) {
		return nil, fmt.Errorf("%w: the user needs CREATE, SELECT, INSERT, UPDATE and DELETE on the database, and for bench run DROP", err)
	}
	const insufficientPrivilege = "42501"
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == insufficientPrivilege {
		return nil, fmt.Errorf("%w: the user needs CREATE on the database, or else on a schema that is there and that it may use", err)
	}
	return nil, err
}
