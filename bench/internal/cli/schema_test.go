package cli

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
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
	result.KindMatrix:   reflect.TypeFor[result.MatrixSummary](),
	result.KindPlan:     reflect.TypeFor[plan.Result](),
	result.KindLua:      reflect.TypeFor[microbench.Summary](),
	result.KindCheck:    reflect.TypeFor[result.Envelope](),
}

// The published schemas are those of the types; -update writes them, with the comments of
// fields as descriptions.
func TestSchemas_AreThoseOfTheTypes(t *testing.T) {
	t.Parallel()
	comments := comments{}
	for kind, of := range kinds {
		schema, err := jsonschema.ForType(of, &jsonschema.ForOptions{})
		require.NoError(t, err)
		comments.describe(t, schema, of)
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
		require.Equal(t, withoutDescriptions(t, want), withoutDescriptions(t, got), "%s; run with -update if this is meant", path)
	}
}

// withoutDescriptions reads a schema without its descriptions: a comment may change without
// a new schema, which the next -update writes.
func withoutDescriptions(t *testing.T, schema []byte) any {
	t.Helper()
	var remove func(any)
	remove = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			delete(value, "description")
			for _, each := range value {
				remove(each)
			}
		case []any:
			for _, each := range value {
				remove(each)
			}
		}
	}
	var read any
	require.NoError(t, json.Unmarshal(schema, &read))
	remove(read)
	return read
}

// comments are those of the fields of structs, as "Type.Field", by the path of their package.
type comments map[string]map[string]string

// describe gives the properties of a schema the comments of the fields that they are
// written from, and the labels and units of figures.
func (c comments) describe(t *testing.T, schema *jsonschema.Schema, of reflect.Type) {
	t.Helper()
	switch of.Kind() {
	case reflect.Pointer:
		c.describe(t, schema, of.Elem())
	case reflect.Slice:
		c.describe(t, schema.Items, of.Elem())
	case reflect.Map:
		c.describe(t, schema.AdditionalProperties, of.Elem())
	case reflect.Struct:
		dir, ours := strings.CutPrefix(of.PkgPath(), "sagabench/")
		if !ours {
			return
		}
		if c[dir] == nil {
			c[dir] = fieldComments(t, filepath.Join("../../..", dir))
		}
		for field := range of.Fields() {
			if field.Anonymous {
				c.describe(t, schema, field.Type)
				continue
			}
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if property := schema.Properties[name]; property != nil {
				texts := []string{field.Tag.Get("label"), field.Tag.Get("unit"), c[dir][of.Name()+"."+field.Name]}
				property.Description = strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), ", ")
				c.describe(t, property, field.Type)
			}
		}
	}
}

// fieldComments reads the comments of the fields of a package's structs.
func fieldComments(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			of, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if fields, ok := of.Type.(*ast.StructType); ok {
				for _, field := range fields.Fields.List {
					text := strings.Join(strings.Fields(field.Doc.Text()+" "+field.Comment.Text()), " ")
					for _, name := range field.Names {
						found[of.Name.Name+"."+name.Name] = text
					}
				}
			}
			return true
		})
	}
	return found
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
	require.NoError(t, json.Unmarshal([]byte(`{"schema": 2, "kind": "check", "rate": 7}`), &got))
	require.Error(t, schemas[result.KindCheck].Validate(got))
}
