// Package open opens a store by the name that a user types. It is the only package
// that knows all stores: stores.go describes each of them.
package open

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"sagabench/store"
)

// Target is a store that can be opened.
type Target struct {
	Driver string // one of the names above
	Config Config // the settings, changed as the name says
}

// Names lists what Parse accepts.
var Names = func() string {
	var names, urls []string
	for _, d := range stores {
		names = append(names, d.name)
		if len(d.schemes) == 0 {
			names = append(names, d.name+":DIR")
		} else {
			urls = append(urls, d.example)
		}
	}
	return strings.Join(names, ", ") + ", or the URL of a server: " + strings.Join(urls, ", ")
}()

// Parse reads the name of a store: as in Names, or the name of an embedded store, a
// colon and a directory, or the URL of a server. cfg holds all other settings. The
// error wraps store.ErrInvalid and shows nothing that follows the colon, which may
// be a password.
func Parse(name string, cfg Config) (Target, error) {
	scheme, rest, _ := strings.Cut(name, ":")
	for _, d := range stores {
		t := Target{Driver: d.name, Config: cfg}
		switch embedded := len(d.schemes) == 0; {
		case name == d.name, embedded && scheme == d.name && rest == "":
		case embedded && scheme == d.name:
			t.SetDir(rest)
		case slices.Contains(d.schemes, scheme):
			t.SetURL(name)
		default:
			continue
		}
		return t, nil
	}
	return Target{}, fmt.Errorf("%w: store: %q is unknown: want %s", store.ErrInvalid, scheme, Names)
}

// descriptor returns the target's entry in the table of stores.
func (t Target) descriptor() descriptor {
	i := slices.IndexFunc(stores, func(d descriptor) bool { return d.name == t.Driver })
	return stores[max(i, 0)] // a Target without a driver is embedded
}

func (t *Target) common() common { return t.descriptor().common(&t.Config) }

// Embedded reports whether the store belongs to the process that opens it.
func (t Target) Embedded() bool { return t.common().url == nil }

// URL returns the URL of the store's server with its password. It is empty for an
// embedded store.
func (t Target) URL() string { return value(t.common().url) }

// SetURL sets the URL of the server. It does nothing to an embedded store.
func (t *Target) SetURL(url string) { set(t.common().url, url) }

// Dir returns the directory of an embedded store. It is empty if none is set, and
// for other stores.
func (t Target) Dir() string { return value(t.common().dir) }

// SetDir sets the directory of an embedded store. It does nothing to others.
func (t *Target) SetDir(dir string) { set(t.common().dir, dir) }

// MustExist makes Open fail with store.ErrAbsent, and create nothing, if there is no
// store yet.
func (t *Target) MustExist() { set(t.common().mustExist, true) }

// Retention returns how long the store keeps finished sagas.
func (t Target) Retention() time.Duration { return value(t.common().retention) }

// SetLog sets the log of what happens in the background, for stores that have one.
func (t *Target) SetLog(log *slog.Logger) { set(t.common().log, log) }

// Schema returns where the tables are on an SQL server. It is empty for other stores.
func (t Target) Schema() string {
	if schema := t.descriptor().schema; schema != nil {
		return schema(t.Config)
	}
	return ""
}

// Location returns the settings that select this target's server and its place on
// it, by their keys in the configuration.
func (t Target) Location() map[string]string { return t.descriptor().location(t.Config) }

// Fresh returns a target on the same server whose sagas are separate from all others:
// under a key prefix b… on Redis, in a schema sagabench_… on SQL servers. Open
// creates it. An embedded store stays in its directory.
func (t Target) Fresh() Target {
	if setFresh := t.descriptor().setFresh; setFresh != nil {
		setFresh(&t.Config)
	}
	return t
}

// Open opens the store. Its error is one line, without a password.
func (t Target) Open(ctx context.Context) (store.Store, error) {
	if !t.Embedded() && t.URL() == "" {
		return nil, fmt.Errorf("%w: %s: which server? Set %[2]s.url, or name it by its URL", store.ErrInvalid, t.Driver)
	}
	if u, err := url.Parse(t.URL()); err == nil && unescaped(u) {
		return nil, fmt.Errorf("%w: %s: url: an @ behind the host: write special characters in a user or password as %%XX", store.ErrInvalid, t.Driver)
	}
	return t.descriptor().open(ctx, t.Config)
}

// value returns what a pointer of common points to, or the zero value.
func value[T any](setting *T) (v T) {
	if setting != nil {
		v = *setting
	}
	return v
}

// set sets what a pointer of common points to, if there is such a setting.
func set[T any](setting *T, v T) {
	if setting != nil {
		*setting = v
	}
}
