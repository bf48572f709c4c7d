// Package filesystem returns the kind of file system that a directory is on. If that is
// in memory, an fsync costs nothing and makes nothing durable.
package filesystem

import "slices"

// InMemory reports whether a file system loses all files when the machine restarts. The
// name is from Of.
func InMemory(name string) bool { return slices.Contains([]string{"tmpfs", "ramfs"}, name) }
