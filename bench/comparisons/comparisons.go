// Package comparisons embeds the variant files that bench matrix knows by name.
package comparisons

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed *.yml
var files embed.FS

// Names lists the embedded variant files, sorted.
func Names() (names []string) {
	paths, _ := fs.Glob(files, "*.yml") // fails only on a bad pattern
	for _, path := range paths {
		names = append(names, strings.TrimSuffix(path, ".yml"))
	}
	return names
}

// Read returns the variant file of that name. ok is false if there is none.
func Read(name string) (text []byte, ok bool) {
	text, err := files.ReadFile(name + ".yml")
	return text, err == nil
}
