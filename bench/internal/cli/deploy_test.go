package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"sagabench/bench/internal/result"
	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/internal/race"
)

const deployDir = "../../../deploy/"

// place is a directory in which the program runs as it does in a container. Addresses and
// files of the container are replaced by ours.
type place struct {
	program
	replace *strings.Replacer
}

func newPlace(t *testing.T) place {
	redis := labtest.Start(t, lab.Redis, lab.Config{})
	p := newProgram(t)
	token, conf := filepath.Join(p.dir, "token"), filepath.Join(p.dir, "conf.yml")
	require.NoError(t, os.WriteFile(token, []byte(theToken+"\n"), 0o600))
	require.NoError(t, os.WriteFile(conf, []byte("redis:\n  url: "+redis.URL()+"\n"), 0o600))
	return place{p, strings.NewReplacer(
		"redis://redis:6379", redis.URL(), "/etc/sagabench/conf.yml", conf,
		"/run/secrets/token", token, "/etc/sagabench/token", token,
		":8080", ":0", ":9464", ":0", ":36789", ":0", "/data/", p.dir+"/", "/results", filepath.Join(p.dir, "results"),
		"=5s", "=0s", "$(RUN)", "run", "$(HOST)", "0",
	)}
}

// start starts a server by the command and the variables of a container.
func (p place) start(command []string, env []string) *running {
	p.t.Helper()
	return p.startWith(p.with(env), p.words(command)...)
}

func (p place) with(env []string) func(*exec.Cmd) {
	return func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, p.words(env)...) }
}

func (p place) words(of []string) []string {
	words := make([]string, len(of))
	for i, word := range of {
		words[i] = p.replace.Replace(word)
	}
	return words
}

// load runs the command of a load host against servers, for a short time.
func (p place) load(command, env []string, targets ...*running) {
	p.t.Helper()
	args := append(p.words(command), "--warmup", "100ms", "--duration", "300ms", "--target", targets[0].url+","+targets[1].url)
	p.env = append(p.env, p.words(env)...)
	p.run(args...).requireRan(p.t)
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal([]byte(readFile(t, deployDir+file)), into))
}

func TestDeploy_ComposeRunsAppHostsAndALoadHost(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	var project struct {
		Services map[string]struct {
			Command     []string
			Environment map[string]string
		}
	}
	readYAML(t, "compose/app-hosts.yml", &project)
	p := newPlace(t)
	service := func(name string) (command, env []string) {
		for name, value := range project.Services[name].Environment {
			env = append(env, name+"="+value)
		}
		return project.Services[name].Command, env
	}
	app1, app2 := p.start(service("app1")), p.start(service("app2"))
	command, env := service("load")
	p.load(command, env, app1, app2)
	results, err := filepath.Glob(filepath.Join(p.dir, "sagabench-results", "*", result.FileSummary))
	require.NoError(t, err)
	require.Len(t, results, 1)
}

// podContainer is a container of a manifest.
type podContainer struct {
	Command, Args []string
	Env           []struct{ Name, Value string }
}

func (c podContainer) env() (env []string) {
	for _, e := range c.Env {
		if e.Value != "" {
			env = append(env, e.Name+"="+e.Value)
		}
	}
	return env
}

type manifest struct {
	Spec struct {
		Template struct {
			Spec struct {
				InitContainers []podContainer `yaml:"initContainers"`
				Containers     []podContainer
			}
		}
	}
}

func TestDeploy_KubernetesRunsACoordinator(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	var deployment manifest
	readYAML(t, "k8s/coordinator/deployment.yaml", &deployment)
	p := newPlace(t)
	c := deployment.Spec.Template.Spec.Containers[0]
	s := p.start(c.Args, c.env())
	status, _ := fetch(t, s.url+"/api/dtmsvr/version", theToken)
	require.Equal(t, 200, status)
}

func TestDeploy_KubernetesMergesWhatLoadHostsMeasured(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	var job manifest
	readYAML(t, "k8s/bench/load.yaml", &job)
	_, stateful, _ := strings.Cut(readFile(t, deployDir+"k8s/bench/app.yaml"), "\n---\n")
	var app manifest
	require.NoError(t, yaml.Unmarshal([]byte(stateful), &app))

	p := newPlace(t)
	c := app.Spec.Template.Spec.Containers[0]
	app1, app2 := p.start(c.Args, c.env()), p.start(c.Args, c.env())
	load, merge := job.Spec.Template.Spec.InitContainers[1], job.Spec.Template.Spec.Containers[0]
	p.load(load.Args, load.env(), app1, app2)

	// The other load host measured the same, at the same time.
	run := filepath.Join(p.dir, "results", "run")
	require.NoError(t, os.CopyFS(filepath.Join(run, "1"), os.DirFS(filepath.Join(run, "0"))))
	p.edit(filepath.Join("results", "run", "1", result.FileSummary), `"id": "`, `"id": "another-`)

	exe, err := os.Executable()
	require.NoError(t, err)
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "bench"), []byte("#!/bin/sh\n"+asProgram+"=1 exec "+exe+` "$@"`+"\n"), 0o700))
	words := p.words(merge.Command)
	for _, host := range []string{"1", "0"} {
		cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "RUN=run", "HOST="+host)
		cmd.Env = append(cmd.Env, merge.env()...)
		output, _ := cmd.CombinedOutput()
		require.Contains(t, []int{exitOK, exitInvalid}, cmd.ProcessState.ExitCode(), string(output))
		require.Equal(t, host == "0", len(output) > 0, "one prints it")
	}
	require.FileExists(t, filepath.Join(run, "merged", result.FileSummary))
}

func TestDeploy_ImageRunsACoordinator(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	text := readFile(t, deployDir+"Dockerfile")
	find := func(pattern string) string { return regexp.MustCompile(pattern).FindStringSubmatch(text)[1] }
	var command []string
	require.NoError(t, json.Unmarshal([]byte(find(`(?m)^CMD (.*)$`)), &command))
	p := newPlace(t)
	s := p.start(command, []string{tokenVariable})
	status, _ := fetch(t, s.url+find(`"http://127.0.0.1:36789(/[a-z]+)"`), "")
	require.Equal(t, 200, status)
	require.DirExists(t, filepath.Join(p.dir, "store"))

	version := regexp.MustCompile(`(?m)^go ([0-9]+\.[0-9]+)`).FindStringSubmatch(readFile(t, "../../../go.mod"))[1]
	require.Contains(t, text, "\nFROM golang:"+version+".")
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}
