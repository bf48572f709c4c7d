package sqlstore

import "time"

// Connections is how many connections to the server the store may have at once, and for
// how long calls have waited for one of them to come free since it was opened, all
// added up.
func (s *Store) Connections() (most int, waited time.Duration) {
	pool, err := s.db.DB()
	if err != nil { // not over a *sql.DB, which openGorm gives it
		return s.cfg.Conns, 0
	}
	stats := pool.Stats()
	return stats.MaxOpenConnections, stats.WaitDuration
}
