// Package open opens a store by the name that a user types. It is the only package
// that knows all stores: stores.go describes each of them.
package open

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sagabench/internal/secret"
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
		switch {
		case name == d.name, scheme == d.name && t.Embedded() && rest == "":
		case scheme == d.name && t.Embedded():
			t.Config.Pebble.Dir = rest
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

// url returns the setting of the server's URL, or nil.
func (t *Target) url() *secret.Text {
	url, _ := t.Config.Keys()[t.Driver+".url"].(*secret.Text)
	return url
}

// Embedded reports whether the store belongs to the process that opens it.
func (t Target) Embedded() bool { return t.url() == nil }

// URL returns the URL of the store's server with its password. It is empty for an
// embedded store.
func (t Target) URL() string {
	if url := t.url(); url != nil {
		return url.Reveal()
	}
	return ""
}

// SetURL sets the URL of the server. The store must not be embedded.
func (t *Target) SetURL(url string) { *t.url() = secret.New(url) }

// Schema returns where the tables are on an SQL server: on MySQL a database in the URL
// replaces the configured schema. It is empty for other stores.
func (t Target) Schema() string {
	if !slices.Contains(t.descriptor().location, "sql.schema") {
		return ""
	}
	if u, err := url.Parse(t.URL()); err == nil && t.Driver == MySQL {
		return cmp.Or(strings.Trim(u.Path, "/"), t.Config.SQL.Schema)
	}
	return t.Config.SQL.Schema
}

// Location returns the settings that select this target's server and its place on it, and
// those that decide its durability class, by their keys in the configuration.
func (t Target) Location() map[string]string {
	location := make(map[string]string)
	for _, key := range t.descriptor().location {
		switch setting := t.Config.Keys()[key].(type) {
		case *string:
			location[key] = *setting
		case *bool:
			location[key] = strconv.FormatBool(*setting)
		case *int:
			location[key] = strconv.Itoa(*setting)
		case *secret.Text:
			location[key] = setting.Reveal()
		}
	}
	return location
}

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
