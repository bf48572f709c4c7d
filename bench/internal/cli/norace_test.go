//go:build !race

package cli

// memoryFactor is what a bound of a process's memory is multiplied by.
const memoryFactor = 1
