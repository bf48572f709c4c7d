// Package outage logs the beginning and the end of an outage, once each.
package outage

import "log/slog"

// Log reports the outcomes of an operation that is repeated.
type Log struct {
	Logger    *slog.Logger
	Failed    string // logged, with the error, at the first of several failures
	Recovered string // logged at the first success after that
	failing   bool
}

// Report takes the outcome of one attempt. Not for concurrent use.
func (l *Log) Report(err error, args ...any) {
	switch {
	case err != nil && !l.failing:
		l.Logger.Warn(l.Failed, append(args, "error", err)...)
	case err == nil && l.failing:
		l.Logger.Info(l.Recovered, args...)
	}
	l.failing = err != nil
}
