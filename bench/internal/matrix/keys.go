package matrix

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sagabench/bench/internal/backend"
	"sagabench/bench/internal/load"
	"sagabench/bench/internal/redisops"
	"sagabench/bench/internal/result"
	"sagabench/store"
	"sagabench/store/open"
)

// Measure is what the runs of a table measure.
type Measure string

// The measures.
const (
	MeasureSaga      Measure = "saga"      // sagas at a rate or with a number in flight, as bench run
	MeasureCapacity  Measure = "capacity"  // the highest rate that is held, as bench capacity
	MeasureOperation Measure = "operation" // single operations of a Redis, through a Go client
	MeasureCrash     Measure = "crash"     // what a crash of the store loses
)

var measures = []Measure{MeasureSaga, MeasureCapacity, MeasureOperation, MeasureCrash}

// The keys of variants that the runners read. Settings of the server have keys of their own,
// see SettingsPrefix.
const (
	KeyStore      = "store"
	KeyBinary     = "binary"
	KeyImage      = "image"
	KeyDurability = "durability"
	KeyCPUs       = "cpus"

	KeyInFlight = "in_flight"
	KeyRate     = "rate"
	KeyDuration = "duration"
	KeyWarmup   = "warmup"
	KeySteps    = "steps"
	KeyBranches = "branches"
	KeyPayload  = "payload"
	KeyFail     = "fail"
	KeyFill     = "fill"
	KeyReplicas = "replicas"
	KeySLO      = "slo"
	KeyHold     = "hold"

	KeyOperation      = "operation"
	KeyClient         = "client"
	KeyClients        = "clients"
	KeyPipeline       = "pipeline"
	KeyKeys           = "keys"
	KeyKeysPerRequest = "keys_per_request"
	KeyNodes          = "nodes"

	KeyCrash = "crash"
)

// keySettings is the key of the server's own settings in a file.
const keySettings = "settings"

// SettingsPrefix begins the key of a setting of the store's server, by its own name.
const SettingsPrefix = keySettings + "."

// key describes a key of variants.
type key struct {
	name     string
	measures []Measure // that have it
	want     string    // what is allowed, in words
	// parse returns the value as it is kept. It returns an error without words if the
	// value is not allowed.
	parse func(text string) (string, bool)
}

var (
	ofSagas      = []Measure{MeasureSaga, MeasureCapacity}
	ofLoops      = []Measure{MeasureSaga, MeasureCapacity, MeasureCrash}
	ofOperations = []Measure{MeasureOperation}
	ofRuns       = []Measure{MeasureSaga, MeasureOperation, MeasureCrash}
)

// keys lists the keys with their types and bounds.
var keys = []key{
	{KeyStore, measures, "pebble, redis, mysql, postgres, or the URL of a server", func(text string) (string, bool) {
		_, err := open.Parse(text, open.Config{})
		return text, err == nil
	}},
	{KeyBinary, measures, "the server's binary: a name on PATH, a path, or a version of Redis in LAB_REDIS_SERVERS", func(text string) (string, bool) {
		return text, text != "" && !strings.ContainsAny(text, " \t\n")
	}},
	{KeyImage, []Measure{MeasureSaga, MeasureCapacity, MeasureOperation}, "a container image with the server, as redis:7.2", func(text string) (string, bool) {
		return text, imageName.MatchString(text)
	}},
	{KeyDurability, measures, "D0, D1, D2, D3 or D4", func(text string) (string, bool) {
		_, ok := store.ParseDurability(text)
		return text, ok
	}},
	number(KeyCPUs, measures, 0.01, 1024, "a number of cores"),

	integer(KeyInFlight, ofLoops, 1, 100_000),
	{KeyRate, ofSagas, "requests per time, as 500/s", func(text string) (string, bool) {
		perS, err := load.ParseRate(text)
		return text, err == nil && perS > 0 && perS <= load.MaxRate
	}},
	duration(KeyDuration, ofRuns, 100*time.Millisecond),
	duration(KeyWarmup, []Measure{MeasureSaga, MeasureCapacity, MeasureOperation}, 0),
	integer(KeySteps, ofSagas, 1, 100),
	oneOf(KeyBranches, ofSagas, "empty", "http"),
	integer(KeyPayload, []Measure{MeasureSaga, MeasureCapacity, MeasureOperation}, 0, 1<<20),
	number(KeyFail, ofSagas, 0, 1, "a share of the sagas"),
	integer(KeyFill, ofSagas, 0, 1_000_000_000),
	{KeySLO, ofSagas, "a service level, as p99=20ms", func(text string) (string, bool) {
		_, err := result.ParseSLO(text)
		return text, err == nil
	}},
	duration(KeyHold, []Measure{MeasureCapacity}, 2*time.Second),

	oneOf(KeyOperation, ofOperations, redisops.Operations()...),
	oneOf(KeyClient, ofOperations, redisops.Clients()...),
	integer(KeyClients, ofOperations, 1, redisops.MaxClients),
	integer(KeyPipeline, ofOperations, 1, redisops.MaxPipeline),
	oneOf(KeyKeys, ofOperations, "one", "many"),
	integer(KeyKeysPerRequest, ofOperations, 1, redisops.MaxKeysPerRequest),
	integer(KeyNodes, []Measure{MeasureSaga, MeasureCapacity, MeasureOperation}, 1, backend.MaxNodes),
	integer(KeyReplicas, ofLoops, 0, backend.MaxReplicas),

	oneOf(KeyCrash, []Measure{MeasureCrash}, "process", "machine", "lost"),
}

// imageName is what engines take as a name of an image, with a host, a tag and a digest.
var imageName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@-]*$`)

func integer(name string, of []Measure, least, most int64) key {
	return key{name, of, fmt.Sprintf("a whole number from %d to %d", least, most), func(text string) (string, bool) {
		n, err := strconv.ParseInt(text, 10, 64)
		return strconv.FormatInt(n, 10), err == nil && n >= least && n <= most
	}}
}

func number(name string, of []Measure, least, most float64, what string) key {
	return key{name, of, fmt.Sprintf("%s from %v to %v", what, least, most), func(text string) (string, bool) {
		x, err := strconv.ParseFloat(text, 64)
		return strconv.FormatFloat(x, 'f', -1, 64), err == nil && x >= least && x <= most
	}}
}

func duration(name string, of []Measure, least time.Duration) key {
	const most = 1000 * time.Hour
	return key{name, of, fmt.Sprintf("a duration from %v to %.0fh, as 500ms, 10s or 1m", least, most.Hours()), func(text string) (string, bool) {
		d, err := time.ParseDuration(text)
		return text, err == nil && d >= least && d <= most
	}}
}

func oneOf(name string, of []Measure, allowed ...string) key {
	return key{name, of, "one of " + strings.Join(allowed, ", "), func(text string) (string, bool) { return text, slices.Contains(allowed, text) }}
}

// check returns the value of a key as it is kept. The error says what is allowed.
func check(m Measure, name, text string) (string, error) {
	i := slices.IndexFunc(keys, func(k key) bool { return k.name == name && slices.Contains(k.measures, m) })
	if i < 0 {
		return "", fmt.Errorf("unknown key for measure %s: want one of %s", m, strings.Join(keysOf(m), ", "))
	}
	value, ok := keys[i].parse(text)
	if !ok {
		return "", fmt.Errorf("%q: want %s", open.Redact(text), keys[i].want)
	}
	return value, nil
}

// keysOf lists the keys of a measure.
func keysOf(m Measure) (names []string) {
	for _, k := range keys {
		if slices.Contains(k.measures, m) {
			names = append(names, k.name)
		}
	}
	return append(names, keySettings)
}

// Values are the checked values of a variant by key. A key that is absent has the default of
// what measures it.
type Values map[string]string

// Int returns a whole number, or other if it is absent.
func (v Values) Int(key string, other int) int {
	if n, err := strconv.Atoi(v[key]); err == nil {
		return n
	}
	return other
}

// Float returns a number, or other if it is absent.
func (v Values) Float(key string, other float64) float64 {
	if x, err := strconv.ParseFloat(v[key], 64); err == nil {
		return x
	}
	return other
}

// Duration returns a duration, or other if it is absent.
func (v Values) Duration(key string, other time.Duration) time.Duration {
	if d, err := time.ParseDuration(v[key]); err == nil {
		return d
	}
	return other
}

// Rate returns a rate in requests per second, or 0 if it is absent.
func (v Values) Rate(key string) float64 {
	perS, _ := load.ParseRate(v[key]) // it was checked
	return perS
}

// Settings returns the settings of the store's server by their own names.
func (v Values) Settings() map[string]string {
	settings := map[string]string{}
	for key, value := range v {
		if name, ok := strings.CutPrefix(key, SettingsPrefix); ok {
			settings[name] = value
		}
	}
	return settings
}

// merged returns the values with those of later lists in place of the earlier ones.
func merged(lists ...Values) Values {
	all := Values{}
	for _, list := range lists {
		maps.Copy(all, list)
	}
	return all
}
