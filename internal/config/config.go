// Package config sets the settings of the bench program from a YAML file, and then from
// the environment. A setting redis.url is redis: {url: …} in the file and SAGABENCH_REDIS_URL
// in the environment.
//
// Unknown keys and variables are errors, since they are most likely misspelt. Only the
// variables that Kubernetes sets for a Service named sagabench are ignored. Errors never
// hold the value of a secret.
package config

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"sagabench/internal/secret"
)

// EnvPrefix begins every variable that is a setting.
const EnvPrefix = "SAGABENCH_"

// Settings holds a pointer for each key: a *string, *bool, *int, *float64, *[]string,
// *time.Duration or *secret.Text. It points to the setting's default, which Load replaces.
//
// A secret setting KEY with a string setting KEY_file may be in the file of that name.
type Settings map[string]any

// Load sets what the file, unless its name is empty, and then the environment say.
// Errors name the file or variable, and the key.
func (s Settings) Load(file string, environ []string) error {
	if file != "" {
		if err := s.loadFile(file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	if err := s.loadEnvironment(environ); err != nil {
		return fmt.Errorf("environment: %w", err)
	}
	for key, setting := range s {
		if name, ok := s[key+"_file"].(*string); ok {
			if err := readTokens(key, *name, setting.(*secret.Text)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s Settings) loadFile(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var sections map[string]any
	if err := yaml.Unmarshal(text, &sections); err != nil {
		return err
	}
	for name, section := range sections {
		values, ok := section.(map[string]any)
		if !ok && (section != nil || !s.hasSection(name)) {
			return unknownKey(name)
		}
		for key, value := range values {
			key = name + "." + key
			setting, ok := s[key]
			if !ok {
				return unknownKey(key)
			}
			if err := set(setting, value); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	return nil
}

func unknownKey(key string) error {
	return fmt.Errorf("unknown key %q: conf.sample.yml lists all keys", key)
}

func (s Settings) hasSection(name string) bool {
	for key := range s {
		if strings.HasPrefix(key, name+".") {
			return true
		}
	}
	return false
}

func (s Settings) loadEnvironment(environ []string) error {
	keys := make(map[string]string, len(s))
	for key := range s {
		keys[Variable(key)] = key
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, EnvPrefix) {
			continue
		}
		key, ok := keys[name]
		switch {
		case ok:
			if err := set(s[key], value); err != nil {
				return fmt.Errorf("%s: %s: %w", name, key, err)
			}
		case !IsServiceVariable(entry):
			return fmt.Errorf("unknown variable %s: conf.sample.yml lists all keys; redis.url is %s", name, Variable("redis.url"))
		}
	}
	return nil
}

// Variable returns the environment variable of a key.
func Variable(key string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// set sets a setting to a value of the file, or to text of the environment. A null leaves
// it as it is, and empty text is the zero value.
func set(setting, value any) (err error) {
	if value == nil {
		return nil
	}
	text := fmt.Sprint(value)
	_, isText := value.(string)
	_, isMap := value.(map[string]any)
	list, isList := value.([]any)
	if f, ok := value.(float64); ok {
		text = strconv.FormatFloat(f, 'f', -1, 64) // 1e6 may be meant for an integer
	}
	switch p := setting.(type) {
	case *secret.Text:
		if !isText {
			return errors.New("is no text: write it in quotes")
		}
		*p = secret.New(text)
		return nil
	case *[]string:
		if *p = []string{}; isText && text != "" {
			*p = strings.Split(text, ",")
		}
		for _, item := range list {
			*p = append(*p, fmt.Sprint(item))
		}
		if isText || isList {
			return nil
		}
		return errors.New("must be a list")
	}
	if isMap || isList {
		return errors.New("must be one value")
	}
	switch p := setting.(type) {
	case *string:
		*p = text
	case *bool:
		*p, err = parse(text, strconv.ParseBool, "true or false")
	case *int:
		*p, err = parse(text, func(text string) (int, error) {
			n, err := strconv.ParseInt(text, 0, strconv.IntSize)
			return int(n), err
		}, "an integer")
	case *float64:
		*p, err = parse(text, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }, "a number")
	case *time.Duration: // a number would be nanoseconds, which nobody means
		if !isText && text != "0" {
			return fmt.Errorf("%s has no unit: write %ss for seconds", text, text)
		}
		if text == "" { // zero is a setting: store.retention would drop all sagas as they end
			return errors.New("is empty: leave it out for the default, or write 0s")
		}
		*p, err = parse(text, time.ParseDuration, "a duration such as 500ms, 10s or 1h30m")
	default:
		panic(fmt.Sprintf("config: a setting cannot be a %T", setting))
	}
	return err
}

func parse[T any](text string, parse func(string) (T, error), want string) (value T, err error) {
	if text == "" {
		return value, nil
	}
	if value, err = parse(text); err != nil {
		return value, fmt.Errorf("%q, must be %s", text, want)
	}
	return value, nil
}
