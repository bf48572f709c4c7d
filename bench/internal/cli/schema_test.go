package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/compare"
	"sagabench/bench/internal/microbench"
	"sagabench/bench/internal/plan"
	"sagabench/bench/internal/result"
)

// schemaDir holds the published schemas, one per kind of result.
const schemaDir = "../../../docs/schema"

// kinds are the results that --json prints and summary.json holds.
var kinds = map[result.Kind]reflect.Type{
	result.KindRun:      reflect.TypeFor[result.Summary](),
	result.KindCapacity: reflect.TypeFor[result.CapacitySummary](),
	result.KindCompare:  reflect.TypeFor[compare.Result](),
	result.KindPlan:     reflect.TypeFor[plan.Result](),
	result.KindLua:      reflect.TypeFor[microbench.Summary](),
	result.KindCheck:    reflect.TypeFor[result.Envelope](),
}

// The published schemas are those of the types; -update writes them.
func TestSchemas_AreThoseOfTheTypes(t *testing.T) {
	t.Parallel()
	for kind, of := range kinds {
		schema, err := jsonschema.ForType(of, &jsonschema.ForOptions{})
		require.NoError(t, err)
		schema.Schema = "https://json-schema.org/draft/2020-12/schema"
		schema.Title = "sagabench result: " + string(kind)
		schema.Properties["kind"].Const = jsonschema.Ptr[any](string(kind))
		schema.Properties["schema"].Const = jsonschema.Ptr[any](float64(result.Schema))
		got, err := json.MarshalIndent(schema, "", "  ")
		require.NoError(t, err)
		path := filepath.Join(schemaDir, string(kind)+".json")
		if *update {
			require.NoError(t, os.WriteFile(path, append(got, '\n'), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got), "%s; run with -update if this is meant", path)
	}
}

var published = sync.OnceValues(func() (map[result.Kind]*jsonschema.Resolved, error) {
	schemas := map[result.Kind]*jsonschema.Resolved{}
	for kind := range kinds {
		text, err := os.ReadFile(filepath.Join(schemaDir, string(kind)+".json"))
		if err != nil {
			return nil, err
		}
		schema := new(jsonschema.Schema)
		if err := json.Unmarshal(text, schema); err != nil {
			return nil, err
		}
		if schemas[kind], err = schema.Resolve(nil); err != nil {
			return nil, err
		}
	}
	return schemas, nil
})

// requireSchema checks a result against the published schema of its kind. What is no
// result passes.
func requireSchema(t *testing.T, text string) {
	t.Helper()
	var got map[string]any
	if json.Unmarshal([]byte(text), &got) != nil || got["schema"] == nil {
		return
	}
	schemas, err := published()
	require.NoError(t, err)
	kind, _ := got["kind"].(string)
	require.Contains(t, schemas, result.Kind(kind))
	require.NoError(t, schemas[result.Kind(kind)].Validate(got))
}

func TestRequireSchema_RefusesAnotherKey(t *testing.T) {
	t.Parallel()
	schemas, err := published()
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(`{"schema": 1, "kind": "check", "rate": 7}`), &got))
	require.Error(t, schemas[result.KindCheck].Validate(got))
}
