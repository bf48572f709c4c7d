package pebblestore

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"

	"github.com/cockroachdb/pebble/v2"
)

// logger receives Pebble's messages.
type logger struct {
	log  *slog.Logger
	disk *disk
}

var _ pebble.Logger = (*logger)(nil)

// fatal is the value with which Fatalf panics.
type fatal struct{ err error }

// Infof implements pebble.Logger.
func (l *logger) Infof(format string, args ...any) {
	l.log.Debug("pebble: " + fmt.Sprintf(format, args...))
}

// Errorf implements pebble.Logger. Once the disk is frozen, which was logged,
// further errors follow from that and are logged at debug level.
func (l *logger) Errorf(format string, args ...any) {
	level := slog.LevelError
	if l.disk.failure() != nil {
		level = slog.LevelDebug
	}
	l.log.Log(context.Background(), level, "pebble: "+fmt.Sprintf(format, args...))
}

// Fatalf implements pebble.Logger. It must not return: Pebble would go on with
// broken state. Nor may it end the process. So it freezes the disk, which makes the
// store refuse all calls. A goroutine in a method of Store panics, and the method
// returns the error. A goroutine of Pebble's own blocks for ever, with the locks
// that it has.
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

// events logs what Infof and Errorf do not report. A damaged file is fatal to Pebble
// by default; with this listener the call that reads the file returns an error.
func (l *logger) events() *pebble.EventListener {
	return &pebble.EventListener{
		DataCorruption:  func(info pebble.DataCorruptionInfo) { l.log.Error("pebble: a file is damaged", "what", info) },
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) { l.log.Warn("pebble: writes wait", "why", info.Reason) },
	}
}

// rescue, deferred directly, turns the panic of Fatalf into an error.
func rescue(err *error) {
	if failed := fatalError(recover()); failed != nil {
		*err = failed
	}
}

// fatalError returns the error of a panic of Fatalf, and lets all other panics
// continue.
func fatalError(panicked any) error {
	switch p := panicked.(type) {
	case nil:
		return nil
	case fatal:
		return p.err
	default:
		panic(p)
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
