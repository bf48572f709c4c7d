package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"sagabench/bench/internal/backend"
	"sagabench/store/open"
)

// starting is the flags about the store's server that is started for a command.
type starting struct {
	start bool     // the store's server
	set   []string // its settings, NAME=VALUE
}

const setFlag = "set"

func (s *starting) flags(f *pflag.FlagSet) {
	f.BoolVar(&s.start, "start", false, "start the store's server for this run, from the binary on PATH")
	f.StringArrayVar(&s.set, setFlag, nil, "NAME=VALUE: a setting of the server that --start starts, by its own names; once for each")
}

// check returns the settings of the server to start. It comes before anything is started.
func (s *starting) check(name string, t open.Target) (settings map[string]string, err error) {
	switch {
	case !s.start:
		return nil, s.none()
	case t.Embedded():
		return nil, fmt.Errorf("--start: %s has no server to start", t.Driver)
	case name != t.Driver:
		return nil, fmt.Errorf("--start: it starts a server of its own: name %s without the address of another", t.Driver)
	}
	settings = make(map[string]string)
	for _, text := range s.set {
		name, value, ok := strings.Cut(text, "=")
		if !ok || !settingName.MatchString(name) {
			return nil, fmt.Errorf("--set: %q, want NAME=VALUE", redactSetting(text))
		}
		if name, err = backend.Setting(t.Driver, name); err != nil {
			return nil, fmt.Errorf("--set: %w", err)
		}
		if _, twice := settings[name]; twice {
			return nil, fmt.Errorf("--set: %s is set twice", name)
		}
		settings[name] = value
	}
	return settings, nil
}

// none refuses the flags if no server is started.
func (s *starting) none() error {
	switch {
	case s.start:
		return errors.New("--start and --target: servers that run already have a store; leave one of the two out")
	case len(s.set) > 0:
		return errors.New("--set: it is for a server that --start starts; another one has its own settings")
	}
	return nil
}

var settingName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)

// secretSetting matches settings that hold passwords.
var secretSetting = regexp.MustCompile(`(?i)^([^=]*(pass|auth|secret)[^=]*|user)=`)

// redactSetting hides the value of NAME=VALUE if it is a secret.
func redactSetting(text string) string {
	if name := secretSetting.FindString(text); name != "" {
		return name + "***"
	}
	return text
}
