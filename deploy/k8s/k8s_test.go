// Package k8s_test checks that what the manifests beside it name exists: files, pods,
// ports, volumes, secrets. The module deploy/schemas checks them against the API.
package k8s_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

type kustomization struct {
	Namespace string
	Resources []string
	Secrets   []struct{ Name string } `yaml:"secretGenerator"`
	Images    []struct{ Name string }
	dir       string
	objects   []object // of its own files
}

type labels map[string]string

type selector struct {
	MatchLabels labels `yaml:"matchLabels"`
}

type object struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Selector yaml.Node // of a Service the labels themselves
		Template struct {
			Metadata struct{ Labels labels }
			Spec     pod
		}
		Ports []struct {
			Port       string
			TargetPort string `yaml:"targetPort"`
		}
		PodSelector selector `yaml:"podSelector"`
		Ingress     []struct {
			From []struct {
				Namespaces *selector `yaml:"namespaceSelector"`
			}
			Ports []struct{ Port string }
		}
		ServiceName string `yaml:"serviceName"`
		Replicas    int
		Completions int
		Parallelism int
		Scale       struct{ Kind, Name string } `yaml:"scaleTargetRef"`
	}
}

type pod struct {
	Automount    *bool       `yaml:"automountServiceAccountToken"`
	ServiceLinks *bool       `yaml:"enableServiceLinks"`
	Grace        int         `yaml:"terminationGracePeriodSeconds"`
	Init         []container `yaml:"initContainers"`
	Containers   []container
	Volumes      []struct {
		Name   string
		Secret struct {
			SecretName string `yaml:"secretName"`
		}
		Claim struct {
			ClaimName string `yaml:"claimName"`
		} `yaml:"persistentVolumeClaim"`
	}
	Security struct {
		NonRoot bool                  `yaml:"runAsNonRoot"`
		User    int                   `yaml:"runAsUser"`
		Seccomp struct{ Type string } `yaml:"seccompProfile"`
	} `yaml:"securityContext"`
}

type container struct {
	Name, Image   string
	Command, Args []string
	Env           []struct{ Name, Value string }
	Ports         []struct {
		Name string
		Port string `yaml:"containerPort"`
	}
	Liveness  probe                   `yaml:"livenessProbe"`
	Readiness probe                   `yaml:"readinessProbe"`
	Mounts    []struct{ Name string } `yaml:"volumeMounts"`
	Security  struct {
		Escalation   *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnly     bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities struct{ Drop []string }
	} `yaml:"securityContext"`
}

type probe struct {
	HTTP struct{ Path, Port string } `yaml:"httpGet"`
}

func decode[T any](t *testing.T, file string) (list []T) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var one T
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return list
		}
		require.NoError(t, err, file)
		list = append(list, one)
	}
}

func load(t *testing.T, dir string) kustomization {
	t.Helper()
	k := decode[kustomization](t, filepath.Join(dir, "kustomization.yaml"))[0]
	k.dir = dir
	for _, file := range k.Resources {
		if strings.HasSuffix(file, ".yaml") {
			k.objects = append(k.objects, decode[object](t, filepath.Join(dir, file))...)
		}
	}
	return k
}

func (k kustomization) find(t *testing.T, kind, name string) object {
	t.Helper()
	i := slices.IndexFunc(k.objects, func(o object) bool { return o.Kind == kind && o.Metadata.Name == name })
	require.GreaterOrEqual(t, i, 0, "%s: no %s %s", k.dir, kind, name)
	return k.objects[i]
}

// selected returns the pods of the directory that have the labels.
func (k kustomization) selected(t *testing.T, want labels) (pods []pod) {
	t.Helper()
	require.NotEmpty(t, want)
	for _, o := range k.objects {
		have := o.Spec.Template.Metadata.Labels
		matches := have != nil
		for name, value := range want {
			matches = matches && have[name] == value
		}
		if matches {
			pods = append(pods, o.Spec.Template.Spec)
		}
	}
	return pods
}

func TestKustomizations_ListTheirFiles(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("*/kustomization.yaml")
	require.NoError(t, err)
	for _, file := range dirs {
		k := load(t, filepath.Dir(file))
		// Pods of operators are not restricted, as the namespace of ours wants its own.
		own := slices.Contains([]string{"base", "bench", "coordinator"}, k.dir)
		require.Equal(t, own, k.Namespace == "sagabench", file)
		files, err := filepath.Glob(filepath.Join(k.dir, "*.yaml"))
		require.NoError(t, err)
		for _, file := range files {
			if filepath.Base(file) != "kustomization.yaml" {
				require.Contains(t, k.Resources, filepath.Base(file), k.dir)
			}
		}
		for _, r := range k.Resources {
			if !strings.HasSuffix(r, ".yaml") {
				require.FileExists(t, filepath.Join(k.dir, r, "kustomization.yaml"))
			}
		}
	}
}

func TestManifests_NameWhatExists(t *testing.T) {
	t.Parallel()
	base := load(t, "base")
	for _, dir := range []string{"coordinator", "bench"} {
		k := load(t, dir)
		require.Contains(t, k.Resources, "../base")
		for _, o := range k.objects {
			name := dir + ": " + o.Kind + " " + o.Metadata.Name
			switch o.Kind {
			case "Deployment", "StatefulSet":
				var s selector
				require.NoError(t, o.Spec.Selector.Decode(&s))
				require.Len(t, k.selected(t, s.MatchLabels), 1, name)
			case "PodDisruptionBudget":
				var s selector
				require.NoError(t, o.Spec.Selector.Decode(&s))
				require.Len(t, k.selected(t, s.MatchLabels), 1, name)
			case "HorizontalPodAutoscaler":
				require.Zero(t, k.find(t, o.Spec.Scale.Kind, o.Spec.Scale.Name).Spec.Replicas, "the autoscaler sets it")
			case "Service":
				var of labels
				require.NoError(t, o.Spec.Selector.Decode(&of))
				pods := k.selected(t, of)
				require.Len(t, pods, 1, name)
				for _, p := range o.Spec.Ports {
					target := p.TargetPort
					if target == "" {
						target = p.Port
					}
					require.True(t, pods[0].listens(target), "%s: port %s", name, target)
				}
			case "NetworkPolicy":
				pods := k.selected(t, o.Spec.PodSelector.MatchLabels)
				require.Len(t, pods, 1, name)
				for _, rule := range o.Spec.Ingress {
					for _, p := range rule.Ports {
						require.True(t, pods[0].listens(p.Port), "%s: port %s", name, p.Port)
					}
				}
			}
			if o.Kind == "StatefulSet" {
				k.find(t, "Service", o.Spec.ServiceName)
			}
			pod := o.Spec.Template.Spec
			volumes := []string{}
			for _, v := range pod.Volumes {
				volumes = append(volumes, v.Name)
				if v.Claim.ClaimName != "" {
					k.find(t, "PersistentVolumeClaim", v.Claim.ClaimName)
				} else {
					require.Equal(t, base.Secrets[0].Name, v.Secret.SecretName, name)
				}
			}
			mounted := []string{}
			for _, c := range slices.Concat(pod.Init, pod.Containers) {
				for _, m := range c.Mounts {
					require.Contains(t, volumes, m.Name, name)
					mounted = append(mounted, m.Name)
				}
				require.Equal(t, k.Images[0].Name, c.Image, name)
				for _, p := range []probe{c.Liveness, c.Readiness} {
					require.True(t, p.HTTP.Port == "" || pod.listens(p.HTTP.Port), name)
				}
			}
			for _, v := range volumes {
				require.Contains(t, mounted, v, name)
			}
		}
	}
}

// listens reports whether a container has the port, by its name or number.
func (p pod) listens(port string) bool {
	for _, c := range p.Containers {
		for _, own := range c.Ports {
			if port == own.Name || port == own.Port {
				return true
			}
		}
	}
	return false
}

func TestPods_AreRestricted(t *testing.T) {
	t.Parallel()
	image, err := os.ReadFile("../Dockerfile")
	require.NoError(t, err)
	for _, dir := range []string{"coordinator", "bench"} {
		for _, o := range load(t, dir).objects {
			pod, name := o.Spec.Template.Spec, dir+": "+o.Metadata.Name
			if pod.Containers == nil {
				continue
			}
			require.True(t, pod.Automount != nil && !*pod.Automount, name)
			require.True(t, pod.ServiceLinks != nil && !*pod.ServiceLinks, name)
			require.True(t, pod.Security.NonRoot, name)
			require.Contains(t, string(image), fmt.Sprintf("USER %d:%[1]d\n", pod.Security.User))
			require.Equal(t, "RuntimeDefault", pod.Security.Seccomp.Type, name)
			for _, c := range slices.Concat(pod.Init, pod.Containers) {
				require.True(t, c.Security.Escalation != nil && !*c.Security.Escalation, c.Name)
				require.True(t, c.Security.ReadOnly, c.Name)
				require.Equal(t, []string{"ALL"}, c.Security.Capabilities.Drop, c.Name)
			}
		}
	}
}

func TestStores_AreReachedByTheirOwnAndUsOnly(t *testing.T) {
	t.Parallel()
	for dir, operator := range map[string]string{"redis-cluster": "redis-operator", "tidb": "tidb-admin"} {
		k := load(t, dir)
		text, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
		require.NoError(t, err)
		require.Contains(t, string(text), "--namespace "+operator)
		policy := k.find(t, "NetworkPolicy", k.Namespace).Spec
		require.Empty(t, policy.PodSelector.MatchLabels, "all pods")
		var from []string
		for _, rule := range policy.Ingress {
			for _, of := range rule.From {
				namespace := k.Namespace
				if of.Namespaces != nil {
					namespace = of.Namespaces.MatchLabels["kubernetes.io/metadata.name"]
				}
				from = append(from, namespace)
				require.Equal(t, namespace == "sagabench", rule.Ports != nil, "%s: %s", dir, namespace)
			}
		}
		require.Equal(t, []string{k.Namespace, operator, "sagabench"}, from, dir)
	}
}

func TestImage_HasNoSecrets(t *testing.T) {
	t.Parallel()
	ignored, err := os.ReadFile("../../.gitignore")
	require.NoError(t, err)
	left, err := os.ReadFile("../Dockerfile.dockerignore")
	require.NoError(t, err)
	for line := range strings.Lines(string(ignored)) {
		if strings.HasPrefix(line, "/deploy/") {
			require.Contains(t, string(left), strings.Trim(line, "/\n")+"\n")
		}
	}
}

func TestCoordinator_StopsInTheTimeThatItHas(t *testing.T) {
	t.Parallel()
	pod := load(t, "coordinator").find(t, "Deployment", "coordinator").Spec.Template.Spec
	c := pod.Containers[0]
	require.Equal(t, "/livez", c.Liveness.HTTP.Path)
	require.Equal(t, "/readyz", c.Readiness.HTTP.Path)
	i := slices.IndexFunc(c.Env, func(e struct{ Name, Value string }) bool { return e.Name == "SAGABENCH_SERVER_DRAIN" })
	drain, err := time.ParseDuration(c.Env[i].Value)
	require.NoError(t, err)
	const grace = 10 * time.Second // the default of server.grace
	require.Greater(t, time.Duration(pod.Grace)*time.Second, drain+grace)
}

func TestLoad_DrivesEachAppHost_AndMergesEachResult(t *testing.T) {
	t.Parallel()
	k := load(t, "bench")
	app, job := k.find(t, "StatefulSet", "app").Spec, k.find(t, "Job", "load").Spec
	args := job.Template.Spec.Init[1].Args
	targets := strings.Split(args[slices.Index(args, "--target")+1], ",")
	require.Len(t, targets, app.Replicas)
	waits := strings.Join(job.Template.Spec.Init[0].Command, " ")
	for i, target := range targets {
		require.Contains(t, waits, fmt.Sprintf(" app-%d", i))
		require.Equal(t, fmt.Sprintf("http://app-%d.%s:%s", i, app.ServiceName, app.Template.Spec.Containers[0].Ports[0].Port), target)
	}
	require.Equal(t, job.Completions, job.Parallelism, "all at the same time")
	merge := job.Template.Spec.Containers[0].Env
	require.Equal(t, "HOSTS", merge[len(merge)-1].Name)
	require.Equal(t, strconv.Itoa(job.Completions), merge[len(merge)-1].Value)
}
