// Package config reads the settings of the bench program: built-in defaults,
// overridden by a file, overridden by the environment. conf.sample.yml in the
// project's root lists every key with its default and meaning; a test keeps the
// two alike.
//
// A setting redis.url is the environment's SAGABENCH_REDIS_URL. A key or variable
// that is none of ours is an error, for it is most likely a misspelt one; only the
// variables that Kubernetes makes of a Service named sagabench are ignored. Errors
// never hold the value of a secret.
package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/providers/structs"
	"github.com/knadh/koanf/v2"

	"sagabench/internal/secret"
	"sagabench/store/open"
)

// EnvPrefix begins every variable that is a setting.
const EnvPrefix = "SAGABENCH_"

// Options are all settings.
type Options struct {
	open.Settings `koanf:",flatten,squash"` // flatten for reading the defaults, squash for decoding

	Coordinator struct {
		Lease            time.Duration `koanf:"lease"`
		RequestTimeout   time.Duration `koanf:"request_timeout"`
		RetryInterval    time.Duration `koanf:"retry_interval"`
		MaxRetryInterval time.Duration `koanf:"max_retry_interval"`
		PollInterval     time.Duration `koanf:"poll_interval"`
		MaxRecovering    int           `koanf:"max_recovering"`
		MaxInFlight      int           `koanf:"max_in_flight"`
		BranchConns      int           `koanf:"branch_conns"`
		StoreWait        time.Duration `koanf:"store_wait"`
		BranchAllow      []string      `koanf:"branch_allow"`
		BranchLoopback   bool          `koanf:"branch_loopback"`
		BranchCA         string        `koanf:"branch_ca"`
		BranchCert       string        `koanf:"branch_cert"`
		BranchKey        string        `koanf:"branch_key"`
	} `koanf:"coordinator"`
	GroupCommit struct {
		MaxBatch int           `koanf:"max_batch"`
		MaxQueue int           `koanf:"max_queue"`
		Flushers int           `koanf:"flushers"`
		Timeout  time.Duration `koanf:"timeout"`
	} `koanf:"group_commit"`
	Server struct {
		Listen         string        `koanf:"listen"`
		Token          secret.Text   `koanf:"token,omitnested"`
		TokenFile      string        `koanf:"token_file"`
		AdminToken     secret.Text   `koanf:"admin_token,omitnested"`
		AdminTokenFile string        `koanf:"admin_token_file"`
		MaxConns       int           `koanf:"max_conns"`
		MaxPerPeer     int           `koanf:"max_conns_per_peer"`
		MaxWait        time.Duration `koanf:"max_wait"`
		Drain          time.Duration `koanf:"drain"`
		Grace          time.Duration `koanf:"grace"`
		Pprof          bool          `koanf:"pprof"`
		AuditSubmits   bool          `koanf:"audit_submits"`
		TLSCert        string        `koanf:"tls_cert"`
		TLSKey         string        `koanf:"tls_key"`
		ClientCA       string        `koanf:"client_ca"`
	} `koanf:"server"`
	Load struct {
		InFlight int           `koanf:"in_flight"`
		Rate     string        `koanf:"rate"`
		Arrival  string        `koanf:"arrival"`
		Duration time.Duration `koanf:"duration"`
		Warmup   time.Duration `koanf:"warmup"`
		Metrics  string        `koanf:"metrics"`
	} `koanf:"load"`
	Scenario struct {
		Steps    int     `koanf:"steps"`
		Branches string  `koanf:"branches"`
		Payload  int     `koanf:"payload"`
		Fail     float64 `koanf:"fail"`
	} `koanf:"scenario"`
}

// Load returns the defaults with the file, unless its name is empty, and then
// the environment laid over them, and the tokens that are in files of their own.
// Errors name the file or variable and the key.
func Load(defaults Options, file string, environ []string) (Options, error) {
	all := koanf.New(".")
	if err := all.Load(structs.Provider(defaults, "koanf"), nil); err != nil {
		return Options{}, fmt.Errorf("the defaults: %w", err)
	}
	known := all.Keys()
	merged := koanf.New(".")
	if file != "" {
		if err := loadFile(merged, known, file); err != nil {
			return Options{}, fmt.Errorf("%s: %w", file, err)
		}
	}
	if err := loadEnvironment(merged, known, environ); err != nil {
		return Options{}, err
	}
	o := defaults
	err := merged.UnmarshalWithConf("", &o, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		TagName:          "koanf",
		WeaklyTypedInput: true, // the environment knows only text
		DecodeHook: mapstructure.ComposeDecodeHookFunc(
			refuseBareDuration, mapstructure.StringToTimeDurationHookFunc(), mapstructure.StringToSliceHookFunc(","),
			decodeSecret),
		Result: &o,
	}})
	if err != nil {
		return Options{}, fmt.Errorf("configuration: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	for _, t := range []struct {
		key, file string
		token     *secret.Text
	}{
		{"server.token", o.Server.TokenFile, &o.Server.Token},
		{"server.admin_token", o.Server.AdminTokenFile, &o.Server.AdminToken},
	} {
		if err := completeTokens(t.key, t.file, t.token); err != nil {
			return Options{}, err
		}
	}
	return o, o.checkTokensDiffer()
}

// refuseBareDuration refuses a duration that is written as a number: it would be
// taken for nanoseconds. None is 0 in every unit.
func refuseBareDuration(from, to reflect.Type, value any) (any, error) {
	if to == reflect.TypeFor[time.Duration]() && from != to && from.Kind() != reflect.String && value != 0 {
		return value, fmt.Errorf("%v has no unit: write %vs for seconds", value, value)
	}
	return value, nil
}

// decodeSecret makes secrets of text.
func decodeSecret(_, to reflect.Type, value any) (any, error) {
	if to != reflect.TypeFor[secret.Text]() {
		return value, nil
	}
	text, ok := value.(string)
	if !ok {
		return nil, errors.New("is no text: write it in quotes")
	}
	return secret.New(text), nil
}

func loadFile(into *koanf.Koanf, known []string, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	read := koanf.New(".")
	if err := read.Load(rawbytes.Provider(text), yaml.Parser()); err != nil {
		return err
	}
	for _, key := range read.Keys() {
		if slices.Contains(known, key) {
			continue
		}
		isSection := func(k string) bool { return strings.HasPrefix(k, key+".") }
		if read.Get(key) == nil && slices.ContainsFunc(known, isSection) {
			read.Delete(key) // a section with nothing in it
			continue
		}
		return fmt.Errorf("unknown key %q: conf.sample.yml lists all there are", key)
	}
	return into.Merge(read)
}

func loadEnvironment(into *koanf.Koanf, known []string, environ []string) error {
	keys := make(map[string]string, len(known))
	for _, key := range known {
		keys[Variable(key)] = key
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, EnvPrefix) {
			continue
		}
		key, ok := keys[name]
		if !ok && ofService(entry) {
			continue
		}
		if !ok {
			return fmt.Errorf("environment: unknown variable %s: conf.sample.yml lists all keys; redis.url is %s", name, Variable("redis.url"))
		}
		if err := into.Set(key, value); err != nil {
			return fmt.Errorf("environment: %s: %w", name, err)
		}
	}
	return nil
}

// Variable is the environment variable of a key.
func Variable(key string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}
