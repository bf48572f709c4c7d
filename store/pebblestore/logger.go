package pebblestore

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"

	"github.com/cockroachdb/pebble/v2"
)

// logger takes pebble's messages.
type logger struct {
	log  *slog.Logger
	disk *disk
}

var _ pebble.Logger = (*logger)(nil)

// fatal is what Fatalf panics with.
type fatal struct{ err error }

func (l *logger) Infof(format string, args ...any) {
	l.log.Debug("pebble: " + fmt.Sprintf(format, args...))
}

func (l *logger) Errorf(format string, args ...any) {
	l.log.Error("pebble: " + fmt.Sprintf(format, args...))
}

// Fatalf must not return: pebble would go on with what it has just found to be
// broken. Ending the process is not this package's to decide. So the disk is
// frozen, which makes the store refuse all calls, and the goroutine goes no
// further: one that a method of Store runs on unwinds to it and the method
// answers the error; one of pebble's own is parked for good, with the locks it
// holds.
func (l *logger) Fatalf(format string, args ...any) {
	message, _, _ := strings.Cut(fmt.Sprintf(format, args...), "\n")
	err := fmt.Errorf("pebble cannot go on: %s", message)
	l.disk.halted.Store(true)
	l.disk.freeze(err)
	if calledByStore() {
		panic(fatal{err})
	}
	select {}
}

// rescue turns the panic of Fatalf into an error.
func (l *logger) rescue(err *error) {
	switch r := recover().(type) {
	case nil:
	case fatal:
		*err = r.err
	default:
		panic(r)
	}
}

// calledByStore reports whether this goroutine is in a method of Store.
func calledByStore() bool {
	pcs := make([]uintptr, 100)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for {
		frame, more := frames.Next()
		if strings.Contains(frame.Function, "/pebblestore.(*Store).") {
			return true
		}
		if !more {
			return false
		}
	}
}
