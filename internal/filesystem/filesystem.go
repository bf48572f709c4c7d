// Package filesystem says what kind of file system a directory is on. On one in
// memory an fsync costs nothing and keeps nothing, whatever a store's own settings
// say.
package filesystem

import "slices"

// InMemory reports whether a file system, by the name that Of gives, forgets all
// files when the machine restarts.
func InMemory(name string) bool { return slices.Contains([]string{"tmpfs", "ramfs"}, name) }
