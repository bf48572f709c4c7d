package sqlstore

import (
	"context"
	"strings"

	"gorm.io/gorm"
)

// Drop drops the store's tables with all that is in them, and the schema unless
// something else is in it. The store is then good only for being closed. It is for
// whoever made a schema of its own for a while.
func (s *Store) Drop(ctx context.Context) error {
	s.stopSweeping() // which would miss the table
	s.sweeping.Wait()
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.RUnlock()
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	if err := s.dialect.drop(s.db.WithContext(limited), s.cfg.Schema); err != nil {
		return s.failure(ctx, "drop", err)
	}
	return nil
}

const dropTables = "DROP TABLE IF EXISTS SCHEMA.saga, SCHEMA.saga_flush, SCHEMA.saga_migration"

// drop looks before it drops the database: MySQL would drop all that is in it.
func (d *mysqlDialect) drop(db *gorm.DB, _ string) error {
	if err := db.Exec(strings.ReplaceAll(dropTables, "SCHEMA", d.database)).Error; err != nil {
		return err
	}
	var others int64
	err := db.Raw("SELECT (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ?) + "+
		"(SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = ?) + "+
		"(SELECT COUNT(*) FROM information_schema.events WHERE event_schema = ?)",
		d.database, d.database, d.database).Scan(&others).Error
	if err != nil || others > 0 {
		return err
	}
	return db.Exec("DROP DATABASE IF EXISTS " + d.database).Error
}

// drop leaves it to the server to keep a schema with something in it.
func (d *postgresDialect) drop(db *gorm.DB, schema string) error {
	if err := db.Exec(strings.ReplaceAll(dropTables, "SCHEMA", schema)).Error; err != nil {
		return err
	}
	err := db.Exec("DROP SCHEMA IF EXISTS " + schema + " RESTRICT").Error
	const dependentObjects = "2BP01"
	if hasCode(err, dependentObjects) {
		return nil
	}
	return err
}
