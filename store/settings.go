package store

import "fmt"

// Settings are those of a store's engine, read from the engine.
type Settings struct {
	Driver     string            // redis, pebble, …
	Version    string            // of the engine
	Durability Durability        // the class that follows from Values
	Values     map[string]string // the settings that decide speed and safety, by the engine's own names
}

// LossWindow is the key in Values of the time before a crash that class D2 may lose, as
// a duration. It is set if the engine's settings bound it.
const LossWindow = "loss_window"

// FileSystem is the key in Values of the file system of the engine's files. It is set
// if that is known.
const FileSystem = "file_system"

// WithFileSystem adds the file system of the engine's files. If it is in memory, a
// restart of the machine loses all files, and the class becomes D0.
func (s Settings) WithFileSystem(fileSystem string, inMemory bool) Settings {
	if fileSystem != "" {
		s.Values[FileSystem] = fileSystem
	}
	if inMemory {
		s.Durability = D0
	}
	return s
}

// Meaning describes in a few words what a crash loses.
func (s Settings) Meaning() string {
	if window := s.Values[LossWindow]; s.Durability == D2 && window != "" {
		return "about the last " + window + " at risk"
	}
	return s.Durability.Meaning()
}

// Durability is the class of what an acknowledged write survives. Results of different
// classes are not comparable.
type Durability int

// The durability classes.
const (
	D0 Durability = iota // nothing is on disk: a restart loses everything
	D1                   // a crash loses all since the last snapshot, or what the kernel had not written yet
	D2                   // a crash loses the last moments: a second, unless LossWindow says otherwise
	D3                   // every acknowledged write was fsynced: a crash loses none
	D4                   // D3, and a replica has it: on another machine, it survives the loss of this one
)

// String gives D0 to D4.
func (d Durability) String() string { return fmt.Sprintf("D%d", int(d)) }

// ParseDurability returns the class that String writes as text. ok is false if there is
// none.
func ParseDurability(text string) (d Durability, ok bool) {
	for d := D0; d <= D4; d++ {
		if d.String() == text {
			return d, true
		}
	}
	return D0, false
}

// Meaning describes in a few words what a crash loses.
func (d Durability) Meaning() string {
	switch d {
	case D0:
		return "nothing on disk"
	case D1:
		return "all since the last snapshot, or the last that the kernel wrote, at risk"
	case D2:
		return "about the last second at risk"
	case D3:
		return "every acknowledged write fsynced"
	case D4:
		return "fsynced, and a replica has it"
	default:
		return "unknown"
	}
}
