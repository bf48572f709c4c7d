package matrix

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// Variant is one combination of the values of a table's axes.
type Variant struct {
	Names  []string // of its values, in the order of the axes
	Values Values
	of     []Value
}

// Name returns the names of its values in one text.
func (v Variant) Name() string { return strings.Join(v.Names, ", ") }

// Options say how a file is run.
type Options struct {
	Quick    bool
	Repeats  int    // blocks of each table; 0: as the file says
	Override Values // replace values of the tables that set these keys, except along an axis
	Seed     uint64 // of the order; 0: random
}

// plan returns the tables as they are to be run. It returns an error if an override is
// not allowed or fits no table.
func (f File) plan(o Options) ([]Table, error) {
	var tables []Table
	fits := map[string]bool{}
	for _, t := range f.Tables {
		if o.Quick {
			if t.Quick.Skip {
				continue
			}
			t = t.quick()
		}
		if o.Repeats > 0 {
			t.Repeats = o.Repeats
		}
		t.Set = maps.Clone(t.Set)
		for name, text := range o.Override {
			if _, has := t.Set[name]; !has {
				continue
			}
			value, err := check(t.Measure, name, text)
			if err != nil {
				return nil, fmt.Errorf("--%s: %w", name, err)
			}
			fits[name], t.Set[name] = true, value
		}
		tables = append(tables, t)
	}
	for name := range o.Override {
		if !fits[name] {
			return nil, fmt.Errorf("no table of this file sets %s", name)
		}
	}
	return tables, nil
}

// quick returns the table of a short run.
func (t Table) quick() Table {
	if t.Quick.Repeats > 0 {
		t.Repeats = t.Quick.Repeats
	}
	t.Set = merged(t.Set, t.Quick.Set)
	t.Axes = slices.Clone(t.Axes)
	for i, a := range t.Axes {
		if keep, ok := t.Quick.Axes[a.Name]; ok {
			t.Axes[i].Values = slices.DeleteFunc(slices.Clone(a.Values), func(v Value) bool { return !slices.Contains(keep, v.Name) })
		}
	}
	return t
}

// Variants returns all combinations of the axes' values. The last axis changes first.
func (t Table) Variants() []Variant {
	variants := []Variant{{Values: t.Set}}
	for _, a := range t.Axes {
		var next []Variant
		for _, v := range variants {
			for _, value := range a.Values {
				next = append(next, Variant{Names: append(slices.Clone(v.Names), value.Name), Values: merged(v.Values, value.Set), of: append(slices.Clone(v.of), value)})
			}
		}
		variants = next
	}
	return variants
}

// order returns the order in which a block, from 1, runs the variants of a table. It follows
// from the seed, so that a matrix that is resumed keeps it.
func order(seed uint64, table string, block, variants int) []int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(table)) // never fails
	return rand.New(rand.NewPCG(seed, h.Sum64()+uint64(block))).Perm(variants)
}
