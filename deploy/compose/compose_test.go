// Package compose_test checks the compose files beside it without Docker: what they say
// to Docker, and with real servers what they say to those. The module deploy/schemas
// checks them against the compose specification.
package compose_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

type project struct {
	file     string
	text     string
	Services map[string]service
	Volumes  map[string]any
	Configs  map[string]struct{ Content string }
	Secrets  map[string]struct{ File string }
}

type service struct {
	Image       string
	Build       any
	Command     []string
	Environment map[string]string
	Ports       []string
	Volumes     []string
	Secrets     []string
	Configs     []any // names, or maps with a source and a target
	Healthcheck struct {
		Test    words
		Disable bool
	}
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	NetworkMode string                                `yaml:"network_mode"`
	CPUs        float64                               `yaml:"cpus"`
	MemLimit    string                                `yaml:"mem_limit"`
}

// words is a command: a list, or one text for the shell.
type words []string

func (w *words) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.SequenceNode {
		return node.Decode((*[]string)(w))
	}
	*w = words{"CMD-SHELL", node.Value}
	return nil
}

func load(t *testing.T, file string) project {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	p := project{file: file, text: string(text)}
	require.NoError(t, yaml.Unmarshal(text, &p))
	return p
}

func loadAll(t *testing.T) (all []project) {
	t.Helper()
	files, err := filepath.Glob("*.yml")
	require.NoError(t, err)
	for _, file := range files {
		all = append(all, load(t, file))
	}
	require.NotEmpty(t, all)
	return all
}

var (
	// pinned is an image of one release. PostgreSQL's have two numbers.
	pinned = regexp.MustCompile(`^(postgres:[0-9]+\.[0-9]+|[a-z/]+:v?[0-9]+\.[0-9]+\.[0-9]+)$`)
	// local publishes a port, or a range of ports, to this machine only.
	local = regexp.MustCompile(`^127\.0\.0\.1:[0-9]+(-[0-9]+)?:[0-9]+(-[0-9]+)?$`)
	// alone is a $ that Docker would replace before the shell sees it.
	alone = regexp.MustCompile(`(^|[^$])(\$\$)*\$([^$]|$)`)
)

func TestServices_ArePinnedBoundedAndLocal(t *testing.T) {
	t.Parallel()
	for _, p := range loadAll(t) {
		for name, s := range p.Services {
			name = p.file + ": " + name
			require.True(t, pinned.MatchString(s.Image) || s.Build != nil, "%s: image %s", name, s.Image)
			require.Positive(t, s.CPUs, name)
			require.NotEmpty(t, s.MemLimit, name)
			require.True(t, s.Healthcheck.Disable || len(s.Healthcheck.Test) > 1, name)
			for _, port := range s.Ports {
				require.Regexp(t, local, port, name)
			}
			for _, word := range append(slices.Clone(s.Command), s.Healthcheck.Test...) {
				require.NotRegexp(t, alone, word, name)
			}
		}
	}
}

func TestServices_ReferToWhatTheFileHas(t *testing.T) {
	t.Parallel()
	for _, p := range loadAll(t) {
		volumes, secrets, configs, ports := []string{}, []string{}, []string{}, []string{}
		for name, s := range p.Services {
			for _, volume := range s.Volumes {
				if from, _, _ := strings.Cut(volume, ":"); strings.HasPrefix(from, "../") {
					// A result's directory is made by hand, everything else is in the repository.
					if filepath.Base(from) != "sagabench-results" {
						require.FileExists(t, from)
					}
				} else {
					volumes = append(volumes, from)
				}
			}
			secrets = append(secrets, s.Secrets...)
			for _, config := range s.Configs {
				if long, ok := config.(map[string]any); ok {
					config = long["source"]
				}
				configs = append(configs, config.(string))
			}
			for other, d := range s.DependsOn {
				require.Contains(t, p.Services, other, "%s: %s", p.file, name)
				require.Equal(t, "service_healthy", d.Condition)
				require.False(t, p.Services[other].Healthcheck.Disable)
			}
			if other, ok := strings.CutPrefix(s.NetworkMode, "service:"); ok {
				require.Contains(t, p.Services, other)
			}
			ports = append(ports, s.Ports...)
		}
		require.Equal(t, keys(p.Volumes), unique(volumes), p.file)
		require.Equal(t, keys(p.Secrets), unique(secrets), p.file)
		require.Equal(t, keys(p.Configs), unique(configs), p.file)
		require.Len(t, unique(ports), len(ports), p.file)
		for _, secret := range p.Secrets {
			require.Equal(t, "secrets", filepath.Dir(secret.File), "where git does not look")
		}
	}
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// unique returns the sorted set of a list.
func unique(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }

func TestFiles_SayHowToStartThem(t *testing.T) {
	t.Parallel()
	for _, p := range loadAll(t) {
		require.Regexp(t, `#   docker compose -f deploy/compose/`+p.file+` up .*--detach --wait`, p.text)
		require.Regexp(t, `#.*\b[Cc]lass D[0-4]\b`, p.text)
	}
}

func TestAppHosts_AreScrapedAsTheDashboardExpects(t *testing.T) {
	t.Parallel()
	p := load(t, "app-hosts.yml")
	type prometheus struct {
		Scrape []struct {
			Job           string                       `yaml:"job_name"`
			Static        []struct{ Targets []string } `yaml:"static_configs"`
			Authorization map[string]string
		} `yaml:"scrape_configs"`
	}
	var own, beside prometheus
	require.NoError(t, yaml.Unmarshal([]byte(p.Configs["prometheus"].Content), &own))
	text, err := os.ReadFile("../grafana/prometheus.yml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &beside))
	require.Len(t, own.Scrape, len(beside.Scrape))
	for i, job := range own.Scrape {
		require.Equal(t, beside.Scrape[i].Job, job.Job)
		require.Equal(t, "/run/secrets/token", job.Authorization["credentials_file"])
		for _, target := range job.Static[0].Targets {
			host, port, _ := strings.Cut(target, ":")
			require.Contains(t, strings.Join(p.Services[host].Command, " "), "0.0.0.0:"+port)
		}
	}
}
