//go:build race

package cli

// The race detector keeps several bytes for each of the program's.
const memoryFactor = 5
