package pebblestore

import (
	"context"
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

// Errorf is quiet once the disk is frozen: that was told, and what pebble tries
// in vain since is no news.
func (l *logger) Errorf(format string, args ...any) {
	level := slog.LevelError
	if l.disk.failure() != nil {
		level = slog.LevelDebug
	}
	l.log.Log(context.Background(), level, "pebble: "+fmt.Sprintf(format, args...))
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

// events are those of pebble's that Infof and Errorf do not tell. What it does
// not name goes nowhere; that a file is damaged is fatal by default, and here
// an error of the call that reads it.
func (l *logger) events() *pebble.EventListener {
	return &pebble.EventListener{
		DataCorruption:  func(info pebble.DataCorruptionInfo) { l.log.Error("pebble: a file is damaged", "what", info) },
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) { l.log.Warn("pebble: writes wait", "why", info.Reason) },
	}
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
