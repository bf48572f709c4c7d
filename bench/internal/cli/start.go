package cli

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"sagabench/bench/internal/backend"
	"sagabench/deploy/lab"
	"sagabench/store"
	"sagabench/store/open"
)

// starting is the flags about the store's server that is started for a command.
type starting struct {
	start bool     // the store's server
	set   []string // its settings, NAME=VALUE

	server lab.Config // of bench matrix only: see serverOf

	durability string // the class that the store gets; empty: that of its settings
}

const (
	setFlag        = "set"
	durabilityFlag = "durability"
)

func (s *starting) flags(f *pflag.FlagSet) {
	f.BoolVar(&s.start, "start", false, "start the store's server for this run, from the binary on PATH")
	f.StringArrayVar(&s.set, setFlag, nil, "NAME=VALUE: a setting of the server that --start starts, by its own names; once for each")
	durabilityFlagOf(f, &s.durability)
}

func durabilityFlagOf(f *pflag.FlagSet, class *string) {
	f.StringVar(class, durabilityFlag, "", "D0 to D3: give pebble, or the server that --start starts, this durability class")
}

// check returns the settings of the server to start, and gives an embedded store its
// durability class. It comes before anything is started.
func (s *starting) check(name string, t *open.Target) (settings map[string]string, err error) {
	switch {
	case !s.start && (s.server.Binary+s.server.Image != "" || s.server.CPUs > 0):
		return nil, errors.New("binary, image and cpus are for a server that is started, and this store has none")
	case !s.start && !t.Embedded():
		return nil, s.none()
	case !s.start && len(s.set) > 0:
		return nil, errSetWithoutStart
	case !s.start:
		return s.setDurability(t)
	case t.Embedded():
		return nil, fmt.Errorf("--start: %s has no server to start", t.Driver)
	case name != t.Driver:
		return nil, fmt.Errorf("--start: it starts a server of its own: name %s without the address of another", t.Driver)
	}
	if settings, err = s.setDurability(t); err != nil {
		return nil, err
	}
	ofClass := maps.Clone(settings)
	for _, text := range s.set {
		name, value, ok := strings.Cut(text, "=")
		if !ok || !settingName.MatchString(name) {
			return nil, fmt.Errorf("--set: %q, want NAME=VALUE", redactSetting(text))
		}
		if name, err = backend.Setting(t.Driver, name); err != nil {
			return nil, fmt.Errorf("--set: %w", err)
		}
		if _, set := ofClass[name]; set {
			return nil, fmt.Errorf("--set: %s: --durability %s sets it, leave one of the two out", name, s.durability)
		}
		if _, twice := settings[name]; twice {
			return nil, fmt.Errorf("--set: %s is set twice", name)
		}
		settings[name] = value
	}
	return settings, nil
}

// setDurability returns the settings that give the server the class, if there is one. It
// gives an embedded store the class.
func (s *starting) setDurability(t *open.Target) (settings map[string]string, err error) {
	if s.durability == "" {
		return map[string]string{}, nil
	}
	class, ok := store.ParseDurability(s.durability)
	switch {
	case !ok:
		return nil, fmt.Errorf("--durability: %q, want D0 to D3", s.durability)
	case class == store.D4:
		return nil, errors.New("--durability: D4 needs a second server, which --start does not start yet: want D0 to D3")
	}
	if settings, err = backend.SetDurability(t, class); err != nil {
		return nil, fmt.Errorf("--durability: %w", err)
	}
	return settings, nil
}

var errSetWithoutStart = errors.New("--set: it is for a server that --start starts; another one has its own settings")

// none refuses the flags if no server is started.
func (s *starting) none() error {
	switch {
	case s.start:
		return errors.New("--start and --target: servers that run already have a store; leave one of the two out")
	case len(s.set) > 0:
		return errSetWithoutStart
	case s.durability != "":
		return errors.New("--durability: it is for pebble, or for a server that --start starts; another one has its own settings")
	}
	return nil
}

var settingName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)

// redactSetting hides the value of NAME=VALUE if it is a secret.
func redactSetting(text string) string {
	if name, _, ok := strings.Cut(text, "="); ok && open.SecretSetting(name) {
		return name + "=***"
	}
	return text
}
