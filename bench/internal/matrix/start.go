package matrix

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sagabench/bench/internal/backend"
	"sagabench/store/open"
)

// Store returns the store that the values name. Operations have one without a name: Redis.
func (v Values) Store() string { return cmp.Or(v[KeyStore], open.Redis) }

// Start returns what the values say of the server to start for a store. A store that is named by
// the address of a server, or is embedded, has none.
func (v Values) Start(t open.Target) backend.Start {
	s := backend.Start{
		Start: !t.Embedded() && v.Store() == t.Driver, Durability: v[KeyDurability],
		Nodes: v.Int(KeyNodes, 1), Replicas: v.Int(KeyReplicas, backend.ReplicasOfClass),
	}
	s.Server.Binary, s.Server.Image, s.Server.CPUs = v[KeyBinary], v[KeyImage], v.Float(KeyCPUs, 0)
	for name, value := range v.Settings() {
		s.Set = append(s.Set, name+"="+value)
	}
	slices.Sort(s.Set)
	return s
}

// inFile turns what is said of flags into what is said of keys.
var inFile = strings.NewReplacer("--set", keySettings, "--start starts", "a variant starts", "--", "")

// checkStore refuses values that the store cannot have, and that no run would show.
func checkStore(m Measure, v Values) error {
	t, err := open.Parse(v.Store(), open.DefaultConfig())
	if err != nil {
		return err
	}
	s := v.Start(t)
	switch {
	case m != MeasureOperation && v[KeyStore] == "":
		return errors.New("store is missing")
	case s.Server.Binary != "" && s.Server.Image != "":
		return errors.New("both binary and image: want one of them")
	case m == MeasureOperation && t.Driver != open.Redis:
		return fmt.Errorf("store: %s: operations are measured on a Redis", t.Driver)
	case m == MeasureCrash && !t.Embedded() && !s.Start:
		return fmt.Errorf("store: the address of a server: want %s, which is started and crashed", t.Driver)
	case !s.Start && len(s.Set) > 0:
		return errors.New("settings are for a server that is started, and this store has none")
	}
	if _, err := s.Check(v.Store(), &t); err != nil {
		return errors.New(inFile.Replace(err.Error()))
	}
	return nil
}
