//go:build !linux

package filesystem

// Of returns "": only Linux is supported.
func Of(string) string { return "" }
