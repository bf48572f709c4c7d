package lab

import (
	"context"
	"testing"
)

var (
	ServerDirs = serverDirs
	FindServer = findServer
)

// Disk is the disk of a server that a test plays.
type Disk struct{ *Server }

// NewDisk returns a disk that can be slow, and keeps what a loss of power takes from dir.
func NewDisk(ctx context.Context, t testing.TB, dir string) Disk {
	t.Helper()
	s := &Server{dir: dir, slowSync: true, powerLoss: true}
	if err := s.prepareDisk(ctx); err != nil {
		t.Fatal(err)
	}
	return Disk{s}
}

// Env returns the environment of a program that writes to the disk.
func (d Disk) Env() []string { return d.diskEnv() }

// Undo takes what is not synced from the disk.
func (d Disk) Undo() error { return d.undoUnsynced() }
