package matrix

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"sagabench/store/open"
)

// File is a variant file.
type File struct {
	Name   string // in errors and results: its path, or the name of an embedded one
	Hash   string // SHA-256 of its contents
	Title  string
	Tables []Table
}

// Table is a set of variants that are measured together.
type Table struct {
	Name    string
	Title   string
	Measure Measure
	Repeats int    // blocks
	Set     Values // of all variants
	Axes    []Axis
	Compare string // axis along which variants are ranked; empty: none are
	Quick   Quick
}

// Axis is something that the variants differ in. Its values are in the order of the file.
type Axis struct {
	Name   string
	Values []Value
}

// Value is one value of an axis.
type Value struct {
	Name string
	Set  Values
	at   place // in the file
}

// Quick is what a short run of a table changes.
type Quick struct {
	Skip    bool                // leaves the table out
	Repeats int                 // 0: as without
	Set     Values              // in addition to, or in place of, those of the table
	Axes    map[string][]string // values of an axis that remain, by the name of the axis
}

const (
	defaultRepeats = 5
	MostRepeats    = 100  // blocks of a table
	mostVariants   = 1000 // of a table: more is a mistake
)

// Parse reads a variant file. Its error names the line, the field and what is allowed.
func Parse(name string, text []byte) (File, error) {
	sum := sha256.Sum256(text)
	f := File{Name: name, Hash: hex.EncodeToString(sum[:])}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return File{}, fmt.Errorf("%s: it is empty: want title and tables", name)
	} else if err != nil {
		return File{}, fmt.Errorf("%s: %w", name, err)
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return File{}, fmt.Errorf("%s: it has a second document: want one", name)
	}
	p := parser{}
	p.fields(document.Content[0], "", fields{
		"title":  required(func(n *yaml.Node, path string) { f.Title = p.text(n, path) }),
		"tables": required(func(n *yaml.Node, path string) { f.Tables = p.tables(n, path) }),
	})
	if p.err != nil {
		return File{}, fmt.Errorf("%s: %w", name, p.err)
	}
	return f, nil
}

// parser reads nodes and keeps the first error.
type parser struct{ err error }

func (p *parser) fail(n *yaml.Node, path, format string, args ...any) {
	if p.err != nil {
		return
	}
	text := fmt.Sprintf(format, args...)
	if path != "" {
		text = path + ": " + text
	}
	p.err = fmt.Errorf("line %d: %s", n.Line, text)
}

// field reads one field of a mapping. path is the field's own.
type field struct {
	read     func(n *yaml.Node, path string)
	required bool
}

type fields map[string]field

func required(read func(*yaml.Node, string)) field { return field{read, true} }
func optional(read func(*yaml.Node, string)) field { return field{read, false} }

// fields reads a mapping that has these fields and no others.
func (p *parser) fields(n *yaml.Node, path string, want fields) {
	names := slices.Sorted(maps.Keys(want))
	seen := map[string]bool{}
	p.mapping(n, path, "a mapping with "+strings.Join(names, ", "), func(key string, value *yaml.Node, at string) {
		seen[key] = true
		if f, ok := want[key]; ok {
			f.read(value, at)
		} else {
			p.fail(value, at, "unknown field: want one of %s", strings.Join(names, ", "))
		}
	})
	for _, name := range names {
		if want[name].required && !seen[name] {
			p.fail(n, path, "%s is missing", name)
		}
	}
}

// mapping calls read for each entry of a mapping that has each key once.
func (p *parser) mapping(n *yaml.Node, path, want string, read func(key string, value *yaml.Node, path string)) {
	n = resolved(n)
	if n.Kind != yaml.MappingNode {
		p.fail(n, path, "want %s", want)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := strings.TrimPrefix(path+"."+key.Value, ".")
		if seen[key.Value] {
			p.fail(key, at, "it is there twice")
		}
		seen[key.Value] = true
		read(key.Value, n.Content[i+1], at)
	}
}

// list calls read for each element of a list that is not empty.
func (p *parser) list(n *yaml.Node, path, want string, read func(n *yaml.Node, path string)) {
	n = resolved(n)
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		p.fail(n, path, "want a list of %s", want)
		return
	}
	for i, element := range n.Content {
		read(element, fmt.Sprintf("%s[%d]", path, i))
	}
}

func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// text reads a scalar that is not empty. Terminals would obey control characters.
func (p *parser) text(n *yaml.Node, path string) string {
	n = resolved(n)
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
		p.fail(n, path, "want a text")
		return ""
	}
	if strings.ContainsFunc(n.Value, unicode.IsControl) { // not quoted: it may have a password
		p.fail(n, path, "want a text of one line without control characters")
		return ""
	}
	return n.Value
}

func (p *parser) repeats(n *yaml.Node, path string) int {
	text := p.text(n, path)
	x, err := strconv.Atoi(text)
	if err != nil || x < 1 || x > MostRepeats {
		p.fail(n, path, "%q: want a whole number from 1 to %d", text, MostRepeats)
	}
	return x
}

func (p *parser) tables(n *yaml.Node, path string) (tables []Table) {
	p.list(n, path, "tables", func(n *yaml.Node, path string) {
		t := p.table(n, path)
		if slices.ContainsFunc(tables, func(other Table) bool { return other.Name == t.Name }) {
			p.fail(n, path+".name", "%q: there is another table of this name", t.Name)
		}
		tables = append(tables, t)
	})
	return tables
}

var tableName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

// place is a node that is read when others have been.
type place struct {
	n    *yaml.Node
	path string
}

func (p *parser) table(n *yaml.Node, path string) Table {
	t := Table{Repeats: defaultRepeats, Set: Values{}}
	var set, axes, compare, quick place
	later := func(at *place) func(*yaml.Node, string) {
		return func(n *yaml.Node, path string) { *at = place{n, path} }
	}
	p.fields(n, path, fields{
		"name": required(func(n *yaml.Node, path string) {
			if t.Name = p.text(n, path); !tableName.MatchString(t.Name) {
				p.fail(n, path, "%q: want 1 to 64 of a-z, 0-9 and -", t.Name)
			}
		}),
		"title": required(func(n *yaml.Node, path string) { t.Title = p.text(n, path) }),
		"measure": required(func(n *yaml.Node, path string) {
			if t.Measure = Measure(p.text(n, path)); !slices.Contains(measures, t.Measure) {
				p.fail(n, path, "%q: want one of %v", t.Measure, measures)
			}
		}),
		"repeats": optional(func(n *yaml.Node, path string) { t.Repeats = p.repeats(n, path) }),
		"set":     optional(later(&set)),
		"axes":    required(later(&axes)),
		"compare": optional(later(&compare)),
		"quick":   optional(later(&quick)),
	})
	if p.err != nil {
		return t
	}
	if set.n != nil {
		t.Set = p.values(t.Measure, set.n, set.path)
	}
	t.Axes = p.axes(t.Measure, axes.n, axes.path)
	if compare.n != nil {
		if t.Compare = p.text(compare.n, compare.path); t.axis(t.Compare) < 0 {
			p.fail(compare.n, compare.path, "%q is not an axis: want one of %s", t.Compare, strings.Join(t.axisNames(), ", "))
		}
	}
	if quick.n != nil {
		t.Quick = p.quick(t, quick.n, quick.path)
	}
	p.combinations(t, n, path, axes)
	return t
}

// combinations refuses too many variants, and those whose values exclude each other.
func (p *parser) combinations(t Table, n *yaml.Node, path string, axes place) {
	count := 1
	for _, a := range t.Axes {
		count *= max(1, len(a.Values))
		if count > mostVariants {
			p.fail(axes.n, axes.path, "more than %d combinations", mostVariants)
			return
		}
	}
	for _, t := range []Table{t, t.quick()} {
		for _, v := range t.Variants() {
			if err := checkStore(t.Measure, v.Values); err != nil {
				at := place{n, path}
				for i, one := range v.of { // the last value without which it would be another error, or none
					rest := t.Set
					for _, other := range slices.Delete(slices.Clone(v.of), i, i+1) {
						rest = merged(rest, other.Set)
					}
					if fmt.Sprint(checkStore(t.Measure, rest)) != err.Error() {
						at = one.at
					}
				}
				p.fail(at.n, at.path, "%s: %v", v.Name(), err)
				return
			}
		}
	}
}

func (p *parser) axes(m Measure, n *yaml.Node, path string) (axes []Axis) {
	p.list(n, path, "axes", func(n *yaml.Node, path string) {
		var a Axis
		var values func()
		p.fields(n, path, fields{
			"name": required(func(n *yaml.Node, path string) {
				a.Name = p.text(n, path)
				if slices.ContainsFunc(axes, func(other Axis) bool { return other.Name == a.Name }) {
					p.fail(n, path, "%q: there is another axis of this name", a.Name)
				}
			}),
			"values": required(func(n *yaml.Node, path string) { values = func() { a.Values = p.axisValues(m, a.Name, n, path) } }),
		})
		if p.err == nil {
			values()
		}
		axes = append(axes, a)
	})
	return axes
}

// axisValues reads the values of an axis. A scalar sets the key that has the axis' name.
func (p *parser) axisValues(m Measure, axis string, n *yaml.Node, path string) (values []Value) {
	p.list(n, path, "values", func(n *yaml.Node, path string) {
		var v Value
		if resolved(n).Kind == yaml.ScalarNode {
			v = Value{Name: p.text(n, path), Set: Values{}}
			p.value(m, v.Set, axis, n, path)
		} else {
			p.fields(n, path, fields{
				"name": required(func(n *yaml.Node, path string) { v.Name = p.text(n, path) }),
				"set":  optional(func(n *yaml.Node, path string) { v.Set = p.values(m, n, path) }),
			})
		}
		v.Name = open.Redact(v.Name) // it may be the URL of a server
		if slices.ContainsFunc(values, func(other Value) bool { return other.Name == v.Name }) {
			p.fail(n, path, "%q: there is another value of this name", v.Name)
		}
		v.at = place{n, path}
		values = append(values, v)
	})
	return values
}

// values reads a mapping of keys to values.
func (p *parser) values(m Measure, n *yaml.Node, path string) Values {
	set := Values{}
	p.mapping(n, path, "a mapping of "+strings.Join(keysOf(m), ", "), func(key string, value *yaml.Node, path string) {
		if key == keySettings {
			p.mapping(value, path, "a mapping of the server's settings", func(name string, value *yaml.Node, path string) {
				if value = resolved(value); value.Kind != yaml.ScalarNode {
					p.fail(value, path, "want one value")
				}
				set[SettingsPrefix+name] = value.Value // may be empty
			})
			return
		}
		p.value(m, set, key, value, path)
	})
	return set
}

func (p *parser) value(m Measure, set Values, key string, n *yaml.Node, path string) {
	text := p.text(n, path)
	if p.err != nil {
		return
	}
	value, err := check(m, key, text)
	if err != nil {
		p.fail(n, path, "%v", err)
		return
	}
	set[key] = value
}

func (p *parser) quick(t Table, n *yaml.Node, path string) (q Quick) {
	if n = resolved(n); n.Kind == yaml.ScalarNode {
		if q.Skip = n.Value == "skip"; !q.Skip {
			p.fail(n, path, "%q: want skip, or a mapping with axes, repeats, set", n.Value)
		}
		return q
	}
	p.fields(n, path, fields{
		"repeats": optional(func(n *yaml.Node, path string) { q.Repeats = p.repeats(n, path) }),
		"set":     optional(func(n *yaml.Node, path string) { q.Set = p.values(t.Measure, n, path) }),
		"axes": optional(func(n *yaml.Node, path string) {
			q.Axes = map[string][]string{}
			p.mapping(n, path, "a mapping of axes to values", func(name string, n *yaml.Node, path string) {
				i := t.axis(name)
				if i < 0 {
					p.fail(n, path, "it is not an axis: want one of %s", strings.Join(t.axisNames(), ", "))
					return
				}
				p.list(n, path, "values of the axis", func(n *yaml.Node, path string) {
					value := open.Redact(p.text(n, path))
					if !slices.ContainsFunc(t.Axes[i].Values, func(v Value) bool { return v.Name == value }) {
						p.fail(n, path, "%q is no value of axis %s", value, name)
					}
					q.Axes[name] = append(q.Axes[name], value)
				})
			})
		}),
	})
	return q
}

// axis returns the index of an axis, or -1.
func (t Table) axis(name string) int {
	return slices.IndexFunc(t.Axes, func(a Axis) bool { return a.Name == name })
}

func (t Table) axisNames() (names []string) {
	for _, a := range t.Axes {
		names = append(names, a.Name)
	}
	return names
}
