package sqlstore

import (
	"context"
	"fmt"
	"strings"

	"sagabench/store"
	"sagabench/store/sqlstore/sqlconn"
)

// migrate applies the steps of the schema's history that the table saga_migration
// does not contain.
func (s *Store) migrate(ctx context.Context) error {
	err := s.dialect.migrating(ctx, s.db, s.cfg, func(tx sqlconn.Session) error {
		// In the order in which others may make them at this moment: see migrateOnGalera.
		exists, err := s.hasTable(ctx, tx, "saga")
		if err != nil {
			return err
		}
		migrated, err := s.hasTable(ctx, tx, "saga_migration")
		if err != nil {
			return err
		}
		if !migrated {
			if exists {
				return fmt.Errorf("%w: there is a table saga that is not ours: use another schema", store.ErrUnsafe)
			}
			if err := s.exec(ctx, tx, "CREATE TABLE saga_migration (version INT PRIMARY KEY, applied BIGINT NOT NULL)"); err != nil {
				return err
			}
		}
		var version int
		if err := tx.QueryRowContext(ctx, "SELECT COALESCE(MAX(version), 0) FROM saga_migration").Scan(&version); err != nil {
			return err
		}
		steps := s.dialect.migrations()
		if version > len(steps) {
			return fmt.Errorf("%w: the schema is at version %d, written by a newer program: this one knows %d", store.ErrUnsafe, version, len(steps))
		}
		for ; version < len(steps); version++ {
			insert := fmt.Sprintf("INSERT INTO saga_migration (version, applied) VALUES (%d, %s)", version+1, s.dialect.now())
			for _, statement := range append(steps[version], insert) {
				if err := s.exec(ctx, tx, statement); err != nil {
					return fmt.Errorf("to version %d: %w", version+1, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("prepare schema %s: %w", s.cfg.Schema, err)
	}
	return nil
}

func (s *Store) hasTable(ctx context.Context, db sqlconn.Session, name string) (bool, error) {
	var n int
	err := db.QueryRowContext(ctx, s.dialect.bind("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ? AND table_name = ?"),
		s.cfg.Schema, name).Scan(&n)
	return n > 0, err
}

// mustExist returns store.ErrAbsent if the schema contains no tables of this package.
func (s *Store) mustExist(ctx context.Context) error {
	migrated, err := s.hasTable(ctx, s.db, "saga_migration")
	if err == nil && !migrated {
		err = fmt.Errorf("schema %s: %w", s.cfg.Schema, store.ErrAbsent)
	}
	return err
}

// Drop implements store.Dropper. It leaves a schema that contains anything else.
func (s *Store) Drop(ctx context.Context) error {
	s.stopSweeping() // it needs the table
	s.sweeping.Wait()
	return s.call(ctx, s.cfg.Timeout, "drop", func(ctx context.Context) error {
		const tables = "DROP TABLE IF EXISTS SCHEMA.saga, SCHEMA.saga_flush, SCHEMA.saga_migration"
		if err := s.exec(ctx, s.db, strings.ReplaceAll(tables, "SCHEMA", s.cfg.Schema)); err != nil {
			return err
		}
		return s.dialect.dropSchema(ctx, s.db, s.cfg.Schema)
	})
}
