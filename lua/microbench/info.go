package microbench

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// info are the fields of one INFO.
type info map[string]string

// info asks for one section; "all" is every one.
func (c *client) info(section string) (info, error) {
	r, err := c.do("INFO", section)
	if err != nil {
		return nil, err
	}
	fields := info{}
	for line := range strings.Lines(r.text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

func (i info) number(name string) (float64, error) {
	x, err := strconv.ParseFloat(i[name], 64)
	if err != nil {
		return 0, fmt.Errorf("INFO: %s: %q is no number", name, i[name])
	}
	return x, nil
}

// cpu is what a server's process has used since its start, in µs: all its
// threads, and the one that runs commands by itself. Children, which write
// snapshots, are in neither. Servers before 6.2 say nothing of their threads:
// main is negative.
type cpu struct{ all, main float64 }

func (i info) cpu() (cpu, error) {
	sum := func(user, sys string) (float64, error) {
		u, err := i.number(user)
		if err != nil {
			return 0, err
		}
		s, err := i.number(sys)
		return 1e6 * (u + s), err
	}
	all, err := sum("used_cpu_user", "used_cpu_sys")
	if err != nil {
		return cpu{}, err
	}
	if _, known := i["used_cpu_user_main_thread"]; !known {
		return cpu{all: all, main: -1}, nil
	}
	main, err := sum("used_cpu_user_main_thread", "used_cpu_sys_main_thread")
	return cpu{all, main}, err
}

func (c cpu) since(earlier cpu) cpu {
	if c.main < 0 || earlier.main < 0 {
		return cpu{c.all - earlier.all, -1}
	}
	return cpu{c.all - earlier.all, c.main - earlier.main}
}

// Inside is how often a command ran, inside scripts or not, and how long the
// server was in it by its own clock, in µs.
type Inside struct {
	Calls float64 `json:"calls"`
	US    float64 `json:"us"`
}

// commands is what INFO says of each command since the server's start, by its
// name in lower case.
func (i info) commands() map[string]Inside {
	all := map[string]Inside{}
	for name, value := range i {
		command, ok := strings.CutPrefix(name, "cmdstat_")
		if !ok {
			continue
		}
		var one Inside
		for field := range strings.SplitSeq(value, ",") {
			name, text, _ := strings.Cut(field, "=")
			switch x, err := strconv.ParseFloat(text, 64); {
			case err != nil:
			case name == "calls":
				one.Calls = x
			case name == "usec":
				one.US = x
			}
		}
		all[command] = one
	}
	return all
}

// ran is what ran between two looks.
func ran(before, after map[string]Inside) map[string]Inside {
	between := maps.Clone(after)
	for name, was := range before {
		is := between[name]
		between[name] = Inside{is.Calls - was.Calls, is.US - was.US}
	}
	maps.DeleteFunc(between, func(_ string, i Inside) bool { return i.Calls <= 0 })
	return between
}
