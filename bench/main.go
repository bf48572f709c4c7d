// Command bench measures what distributed transactions cost on a storage
// backend, and whether every one of them came out right.
package main

import (
	"os"

	"sagabench/bench/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
