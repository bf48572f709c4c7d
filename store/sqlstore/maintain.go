package sqlstore

import (
	"context"
	"fmt"
	"time"

	"sagabench/internal/outage"
	"sagabench/store"
)

const (
	sweepEvery = time.Second
	// sweepLimit is how many sagas one statement drops: few enough that it holds
	// its locks for milliseconds.
	sweepLimit = 500
)

// startSweeping drops what is past its retention, until Close.
func (s *Store) startSweeping() {
	ctx, cancel := context.WithCancel(context.Background())
	s.stopSweeping = cancel
	s.sweeping.Go(func() {
		ticker := time.NewTicker(sweepEvery)
		defer ticker.Stop()
		log := outage.Log{Logger: s.cfg.Log, Failed: "dropping sagas past their retention failed; trying again", Recovered: "sagas past their retention are dropped again"}
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			// An error costs no more than a second: whatever is left is seen as gone.
			if err := s.sweep(ctx); ctx.Err() == nil {
				log.Report(err, "store", s.address)
			}
		}
	})
}

// sweep drops all sagas whose retention has ended, sweepLimit at a time.
func (s *Store) sweep(ctx context.Context) error {
	for {
		limited, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
		var dropped int64
		err := s.persist(limited, func() (err error) {
			dropped, err = s.dialect.sweep(limited, s.db, sweepLimit)
			return err
		})
		cancel()
		if err != nil || dropped < sweepLimit {
			return err
		}
	}
}

// maxFindings bounds how many faults Verify reads.
const maxFindings = "1000"

// Verify implements store.Verifier. The server guarantees that the indexes match the
// table. This checks that done, which decides what due means, follows from the status,
// and that each row is a saga.
func (s *Store) Verify(ctx context.Context) (findings []string, err error) {
	err = s.call(ctx, unlimited, "verify", func(ctx context.Context) error {
		rows, err := s.rows(ctx, s.db, "SELECT "+s.columns(withoutBody)+" FROM saga"+
			" WHERE status NOT IN ('s', 'a', 'S', 'F') OR done <> (status IN ('S', 'F')) OR epoch < 1 OR epoch > ? OR due < created"+
			" OR marks = '' OR REPLACE(REPLACE(REPLACE(marks, '-', ''), 'y', ''), 'n', '') <> '' LIMIT "+maxFindings, int64(store.MaxEpoch))
		for _, r := range rows {
			switch status := r.status(); {
			case !status.Valid():
				findings = append(findings, fmt.Sprintf("%s: %q is no status", r.GID, r.Status))
			case status.Final() && !r.Done:
				findings = append(findings, r.GID+": ended, and still in the due index")
			case !status.Final() && r.Done:
				findings = append(findings, r.GID+": unfinished, and expires")
			default:
				findings = append(findings, r.GID+": its epoch, its marks or its due time cannot be")
			}
		}
		return err
	})
	return findings, err
}
