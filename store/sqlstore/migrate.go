package sqlstore

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"sagabench/store"
)

// migration says that the schema has been taken through one step.
type migration struct {
	Version int   `gorm:"primaryKey;autoIncrement:false"`
	Applied int64 // milliseconds since 1970
}

// TableName implements gorm's schema.Tabler.
func (migration) TableName() string { return "saga_migration" }

// migrate takes the schema through the steps that it has not been through.
func (s *Store) migrate(ctx context.Context) error {
	err := s.dialect.migrating(s.db.WithContext(ctx), s.cfg, func(tx *gorm.DB) error {
		ours := tx.Migrator().HasTable(&migration{})
		if !ours && tx.Migrator().HasTable(&row{}) {
			return fmt.Errorf("%w: there is a table saga that is not ours: use another schema", store.ErrUnsafe)
		}
		if !ours {
			if err := tx.Exec("CREATE TABLE saga_migration (version INT PRIMARY KEY, applied BIGINT NOT NULL)").Error; err != nil {
				return err
			}
		}
		var there int
		if err := tx.Model(&migration{}).Select("COALESCE(MAX(version), 0)").Scan(&there).Error; err != nil {
			return err
		}
		steps := s.dialect.migrations()
		if there > len(steps) {
			return fmt.Errorf("%w: the schema is at version %d, written by a newer program: this one knows %d", store.ErrUnsafe, there, len(steps))
		}
		for version := there + 1; version <= len(steps); version++ {
			for _, statement := range steps[version-1] {
				if err := tx.Exec(statement).Error; err != nil {
					return fmt.Errorf("to version %d: %w", version, err)
				}
			}
			err := tx.Exec("INSERT INTO saga_migration (version, applied) VALUES (?, "+s.dialect.now()+")", version).Error
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("prepare schema %s: %w", s.cfg.Schema, err)
	}
	return nil
}

// mustExist fails with store.ErrAbsent if the schema holds no tables of ours.
func (s *Store) mustExist(ctx context.Context) error {
	if s.db.WithContext(ctx).Migrator().HasTable(&migration{}) {
		return nil
	}
	return fmt.Errorf("schema %s: %w", s.cfg.Schema, store.ErrAbsent)
}
