//go:build !unix

package lab

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

func childAttributes(account string) (*syscall.SysProcAttr, error) {
	if account != "" {
		return nil, fmt.Errorf("run as %s: not possible on %s", account, runtime.GOOS)
	}
	return nil, nil
}

func changeOwner(account, _ string) error {
	_, err := childAttributes(account)
	return err
}

// startWatchdog does nothing: a child that was not stopped outlives us.
func startWatchdog(...string) (release func(), err error) { return func() {}, nil }

func resume(*os.Process) {}

func killGroup(p *os.Process) { _ = p.Kill() }

// processEnded is never sure, so that removeStale removes nothing.
func processEnded(int) bool { return false }

func isOwnDir(string) bool { return false }

func ownerOf(string) (uid uint32, ok bool) { return 0, false }
