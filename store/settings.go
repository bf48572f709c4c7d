package store

import "fmt"

// Settings is what a store's engine says of itself: read back from it, never
// assumed.
type Settings struct {
	Driver     string            // redis, pebble, …
	Version    string            // of the engine
	Durability Durability        // the class that follows from Values
	Values     map[string]string // the settings that decide speed and safety, by the engine's own names
}

// Durability is what an acknowledged write survives. Results of different
// classes compare unlike promises.
type Durability int

// The durability classes.
const (
	D0 Durability = iota // nothing is on disk: a restart loses everything
	D1                   // snapshots only: a crash loses all since the last
	D2                   // a crash loses about the last second
	D3                   // every acknowledged write was fsynced: a crash loses none
	D4                   // D3, and on a second machine: the loss of a machine loses none
)

// String gives D0 to D4.
func (d Durability) String() string { return fmt.Sprintf("D%d", int(d)) }

// Meaning says in a few words what a crash costs.
func (d Durability) Meaning() string {
	switch d {
	case D0:
		return "nothing on disk"
	case D1:
		return "snapshots only"
	case D2:
		return "about the last second at risk"
	case D3:
		return "every acknowledged write fsynced"
	case D4:
		return "fsynced, and on a second machine"
	default:
		return "unknown"
	}
}
