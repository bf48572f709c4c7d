// Package comparisons has the variant files that bench matrix knows by name.
package comparisons

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
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

// Read returns the embedded variant file of that name, or else the file at that path.
func Read(name string) ([]byte, error) {
	if text, err := files.ReadFile(name + ".yml"); err == nil {
		return text, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("variant file: %w; by name there are %s", err, strings.Join(Names(), ", "))
	}
	return text, nil
}
