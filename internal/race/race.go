// Package race tells tests of the race detector, which makes them up to twenty times slower.
package race

import "testing"

// Skip skips a test if the race detector is on. It is for long tests in which that would
// find nothing more: of one goroutine, or of goroutines that shorter tests run too.
func Skip(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("the race detector would find nothing more here")
	}
}
