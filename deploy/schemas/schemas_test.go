package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	compose "github.com/compose-spec/compose-go/v2/schema"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	_ "k8s.io/cli-runtime" // its module has the schema of Kubernetes
)

// documents returns the documents of a YAML file as the JSON decoder would.
func documents(t *testing.T, file string) (list []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document, asJSON map[string]any
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return list
		}
		require.NoError(t, err, file)
		text, err := json.Marshal(document)
		require.NoError(t, err, file)
		require.NoError(t, json.Unmarshal(text, &asJSON))
		list = append(list, asJSON)
	}
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	list, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, list, pattern)
	return list
}

func TestCompose_FollowsTheSpecification(t *testing.T) {
	t.Parallel()
	for _, file := range files(t, "../compose/*.yml") {
		for _, project := range documents(t, file) {
			require.NoError(t, compose.Validate(project), file)
		}
	}
}

func TestCompose_RefusesAnUnknownKey(t *testing.T) {
	t.Parallel()
	service := map[string]any{"image": "redis", "mem_limits": "1g"}
	require.ErrorContains(t, compose.Validate(map[string]any{"services": map[string]any{"redis": service}}), "mem_limits")
}

// kubernetes are the schemas of the API's types. Unknown keys are errors, as they are to
// kubectl apply.
type kubernetes struct {
	compiler *jsonschema.Compiler
	types    map[string]string // by apiVersion and kind: the place in the document
}

const apiDocument = "kubernetes.json"

func openKubernetes(t *testing.T) kubernetes {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/cli-runtime").Output()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "artifacts/openapi/swagger.json"))
	require.NoError(t, err)
	var api struct {
		Definitions map[string]map[string]any `json:"definitions"`
	}
	require.NoError(t, json.Unmarshal(text, &api))
	k := kubernetes{compiler: jsonschema.NewCompiler(), types: make(map[string]string)}
	definitions := make(map[string]any)
	for name, definition := range api.Definitions {
		if definition["properties"] != nil {
			definition["additionalProperties"] = false
		}
		if definition["format"] == "int-or-string" {
			definition["type"] = []any{"integer", "string"}
		}
		kinds, _ := definition["x-kubernetes-group-version-kind"].([]any)
		for _, kind := range kinds {
			kind := kind.(map[string]any)
			version := strings.TrimPrefix(kind["group"].(string)+"/"+kind["version"].(string), "/")
			k.types[version+" "+kind["kind"].(string)] = apiDocument + "#/definitions/" + name
		}
		definitions[name] = definition
	}
	require.NoError(t, k.compiler.AddResource(apiDocument, map[string]any{"definitions": definitions}))
	return k
}

// validate returns what is wrong with an object. It reports false if the API does not
// have its type.
func (k kubernetes) validate(t *testing.T, object map[string]any) (known bool, err error) {
	t.Helper()
	place, ok := k.types[object["apiVersion"].(string)+" "+object["kind"].(string)]
	if !ok {
		return false, nil
	}
	schema, err := k.compiler.Compile(place)
	require.NoError(t, err)
	return true, schema.Validate(object)
}

// operators have types of their own, whose schemas are not here.
var operators = map[string]bool{"RedisCluster": true, "TidbCluster": true, "Kustomization": true}

func TestKubernetes_FilesFollowTheAPI(t *testing.T) {
	t.Parallel()
	k := openKubernetes(t)
	for _, file := range files(t, "../k8s/*/*.yaml") {
		for _, object := range documents(t, file) {
			known, err := k.validate(t, object)
			require.NoError(t, err, file)
			require.Equal(t, !operators[object["kind"].(string)], known, "%s: %s", file, object["kind"])
		}
	}
}

func TestKubernetes_RefusesWhatTheAPIRefuses(t *testing.T) {
	t.Parallel()
	k := openKubernetes(t)
	for name, spec := range map[string]map[string]any{
		"unknown key":  {"template": map[string]any{}, "completion": 2},
		"missing key":  {"completions": 2},
		"another type": {"template": map[string]any{}, "completions": "two"},
	} {
		known, err := k.validate(t, map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": spec})
		require.True(t, known)
		require.Error(t, err, name)
	}
}
