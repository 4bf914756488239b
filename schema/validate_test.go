package schema_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/schema"
	"github.com/anykind/anykind/unstructured"
)

// definedSchema returns the schema of a kind Thing with fields of spec. more has further fields of the version.
func definedSchema(t testing.TB, fields, more string) *schema.Schema {
	t.Helper()
	definition, err := unstructured.Decode([]byte(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
		"spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
		"versions": [{"name": "v1", "served": true, "storage": true` + more + `, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
			"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}}},
			"status": {"type": "object", "properties": {"phase": {"type": "string", "enum": ["Ready"]}}},
			"spec": {"type": "object", "properties": {` + fields + `}}}}}}]}}`))
	require.NoError(t, err)
	client, err := schema.NewOffline("")
	require.NoError(t, err)
	client, err = client.WithDefinitions(definition)
	require.NoError(t, err)
	s, err := client.Kind(t.Context(), kschema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"})
	require.NoError(t, err)
	return s
}

// thing returns an object of the kind Thing with a spec.
func thing(t testing.TB, spec string) *unstructured.Object {
	t.Helper()
	obj, err := unstructured.Decode([]byte(`{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {` + spec + `}}`))
	require.NoError(t, err)
	return obj
}

// lines returns problems as text. Warnings begin with "warning: ".
func lines(result *schema.Result) (all []string) {
	for _, problem := range result.Problems {
		text := problem.Keyword + ": " + problem.String()
		if problem.IsWarning {
			text = "warning: " + text
		}
		all = append(all, text)
	}
	return all
}

func TestSchema_Validate_ProblemsOfCustomResources(t *testing.T) {
	for _, c := range []struct {
		fields, spec string
		want         []string
	}{
		{`"replicas": {"type": "integer"}`, `"replicas": 3`, nil},
		{`"replicas": {"type": "integer"}`, `"replicsa": 3`, []string{`unknown: spec.replicsa: the schema has no such field (did you mean replicas?)`}},
		{`"a": {"type": "object", "properties": {"b": {"type": "array", "items": {"type": "object", "properties": {"image": {"type": "string"}}}}}}`, `"image": "x"`,
			[]string{`unknown: spec.image: the schema has no such field (did you mean a.b[].image?)`}},
		{`"one": {"type": "string"}, "two": {"type": "string"}`, `"different": 1`, []string{`unknown: spec.different: the schema has no such field (the fields are one, two)`}},
		{`"a": {"type": "integer"}`, `"a": "3"`, []string{`type: spec.a: is "3", the schema says an integer (write 3 without quotes)`}},
		{`"a": {"type": "string"}`, `"a": 8080`, []string{`type: spec.a: is 8080, the schema says a string (write "8080" in quotes)`}},
		{`"a": {"type": "array", "items": {"type": "string"}}`, `"a": "x"`, []string{`type: spec.a: is "x", the schema says a list (write a list with the value as its item)`}},
		{`"a": {"type": "array", "items": {"type": "string"}}`, `"a": [null]`, []string{`type: spec.a[0]: is null, the schema says a string (omit the field)`}},
		{`"a": {"type": "integer"}`, `"a": 1.0`, nil},
		{`"a": {"type": "object", "required": ["b"], "properties": {"b": {"type": "string", "enum": ["x", "y"]}}}`, `"a": {}`, []string{`required: spec.a.b: is missing, the schema requires it (set it to one of "x", "y")`}},
		{`"a": {"type": "object", "required": ["b"], "properties": {"b": {"type": "string"}}}`, `"a": {"b": null}`, []string{`required: spec.a.b: is missing, the schema requires it (add it: a string)`}},
		{`"a": {"type": "object", "required": ["b"], "properties": {"b": {"type": "string", "default": "x"}}}`, `"a": {"b": null}`, nil},
		{`"a": {"type": "string", "nullable": true}, "b": {"type": "string"}`, `"a": null, "b": null`, nil},
		{`"a": {"type": "string", "enum": ["Always", "Never"]}`, `"a": "always"`, []string{`enum: spec.a: is "always", the schema says one of "Always", "Never" (did you mean Always?)`}},
		{`"a": {"type": "string", "pattern": "^[a-z]+$"}`, `"a": "A"`, []string{`pattern: spec.a: is "A", the schema says a string that matches ^[a-z]+$`}},
		{`"a": {"type": "string", "format": "date-time"}`, `"a": "yesterday"`, []string{`format: spec.a: is "yesterday", the schema says date-time (write 2006-01-02T15:04:05Z)`}},
		{`"a": {"type": "string", "format": "date-time"}`, `"a": []`, []string{`warning: type: spec.a: is a list, the schema says string (date-time) (the server accepts a list in place of a string with a format)`}},
		{`"a": {"type": "string", "minLength": 2, "maxLength": 3}`, `"a": "äöüß"`, []string{`maxLength: spec.a: has 4 characters, the schema says at most 3`}},
		{`"a": {"type": "integer", "minimum": 1, "maximum": 5, "exclusiveMaximum": true, "multipleOf": 2}`, `"a": 5`, []string{`maximum: spec.a: is 5, the schema says less than 5`, `multipleOf: spec.a: is 5, the schema says a multiple of 2`}},
		{`"a": {"type": "integer", "format": "int32"}`, `"a": 3000000000`, []string{`format: spec.a: is 3000000000, the schema says int32 (it has at most 32 bits)`}},
		{`"a": {"type": "array", "minItems": 2, "items": {"type": "string"}}`, `"a": ["x"]`, []string{`minItems: spec.a: has 1 item, the schema says at least 2`}},
		{`"a": {"type": "object", "maxProperties": 1, "additionalProperties": {"type": "string"}}`, `"a": {"x": "", "y": ""}`, []string{`maxProperties: spec.a: has 2 fields, the schema says at most 1`}},
		{`"a": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}`, `"a": ["x", "y", "x"]`, []string{`x-kubernetes-list-type: spec.a[2]: is in the list twice: "x", the schema says each item once (remove it)`}},
		{`"a": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"], "items": {"type": "object", "required": ["port"], "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}}}}`,
			`"a": [{"port": 80}, {"port": 80, "protocol": "TCP"}, {"port": 80, "protocol": "UDP"}]`,
			[]string{`x-kubernetes-list-type: spec.a[1]: has the same port 80, protocol "TCP" as another item, the schema says each once (change or remove it)`}},
		{`"a": {"x-kubernetes-int-or-string": true}`, `"a": true`, []string{`type: spec.a: is true, the schema says an integer or string`}},
		{`"a": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"b": {"type": "object"}}}`, `"a": {"c": {"d": 1}, "b": {"d": 1}}`,
			[]string{`unknown: spec.a.b.d: the schema has no such field (the schema describes no fields here)`}},
		{`"a": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}`, `"a": {"apiVersion": "v1", "metadata": {"name": "x", "lables": {}}}`,
			[]string{`required: spec.a.kind: is missing, an embedded resource requires it (add it: a string)`, `unknown: spec.a.metadata.lables: the schema has no such field (did you mean labels?)`}},
		{`"a": {"type": "object", "oneOf": [{"required": ["b"]}, {"required": ["c"]}], "properties": {"b": {"type": "string"}, "c": {"type": "string"}}}`, `"a": {"b": "", "c": ""}`,
			[]string{`oneOf: spec.a: matches more than one of the 2 schemas of oneOf, the schema says exactly one (set exactly one of b, c)`}},
		{`"a": {"type": "object", "anyOf": [{"required": ["b"]}, {"required": ["c"]}], "properties": {"b": {"type": "string"}, "c": {"type": "string"}}}`, `"a": {}`,
			[]string{`anyOf: spec.a: matches none of the 2 schemas of anyOf (either spec.a.b: is missing, the schema requires it, or spec.a.c: is missing, the schema requires it)`}},
		{`"a": {"type": "object", "not": {"required": ["b"]}, "properties": {"b": {"type": "string"}}}`, `"a": {"b": ""}`, []string{`not: spec.a: matches the schema in not, which it must not match (leave out b)`}},
		{`"a": {"type": "string", "description": "Old name. Deprecated: use b instead."}, "b": {"type": "string"}`, `"a": "x"`, []string{`warning: deprecated: spec.a: Deprecated: use b instead`}},
	} {
		result := definedSchema(t, c.fields, "").Validate(t.Context(), thing(t, c.spec), nil)
		assert.Equal(t, c.want, lines(result), "%s: %s", c.fields, c.spec)
		assert.Empty(t, result.NotChecked)
	}
}

// owner returns a reference to a controller.
func owner(apiVersion, kind string) string {
	return `{"apiVersion": "` + apiVersion + `", "kind": "` + kind + `", "name": "x", "uid": "y", "controller": true}`
}

func TestSchema_Validate_Metadata(t *testing.T) {
	s := definedSchema(t, "", "")
	for metadata, want := range map[string][]string{
		`{"name": "a"}`:                     nil,
		`{"generateName": "a-"}`:            nil,
		`{}`:                                {`required: metadata: has neither name nor generateName (set metadata.name)`},
		`{"name": "longer-than-8"}`:         {`maxLength: metadata.name: has 13 characters, the schema says at most 8`},
		`{"name": "a", "labels": {"a": 1}}`: {`type: metadata.labels.a: is 1, the schema says a string (write "1" in quotes)`},
		`{"name": "a", "labels": {"a.b/c": "x y"}}`:                                                  {`metadata: metadata.labels["a.b/c"]: is "x y": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`},
		`{"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x"}]}`:       {`required: metadata.ownerReferences[0].uid: is missing, a reference to an owner requires it (add it: a string)`},
		`{"name": "a", "ownerReferences": [` + owner("v1", "Pod") + `, ` + owner("v1", "Pod") + `]}`: {`metadata: metadata.ownerReferences: has several controllers, the server accepts one (set controller of one owner only)`},
		`{"name": "a", "ownerReferences": [` + owner("a/b/c", "Pod") + `]}`:                          {`metadata: metadata.ownerReferences[0].apiVersion: is "a/b/c", not a group and version (write v1 or apps/v1)`},
		`{"name": "a", "ownerReferences": [` + owner("apps/", "Pod") + `]}`:                          {`metadata: metadata.ownerReferences[0].apiVersion: is "apps/", not a group and version (write v1 or apps/v1)`},
		`{"name": "a", "ownerReferences": [` + owner("v1", "Event") + `]}`:                           {`metadata: metadata.ownerReferences[0]: is an Event, which cannot be an owner`},
		`{"name": "a", "finalizers": ["orphan", "foregroundDeletion"]}`:                              {`metadata: metadata.finalizers: has both orphan and foregroundDeletion (remove one)`},
	} {
		obj, err := unstructured.Decode([]byte(`{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": ` + metadata + `}`))
		require.NoError(t, err)
		var problems []string
		for _, line := range lines(s.Validate(t.Context(), obj, nil)) {
			if !strings.HasPrefix(line, "warning: ") {
				problems = append(problems, line)
			}
		}
		assert.Equal(t, want, problems, metadata)
	}
}

func TestSchema_Validate_DeprecatedVersion(t *testing.T) {
	for more, want := range map[string][]string{
		``:                     nil,
		`, "deprecated": true`: {`warning: deprecated: Thing of example.com/v1 is deprecated`},
		`, "deprecated": true, "deprecationWarning": "use v2"`: {`warning: deprecated: use v2`},
	} {
		assert.Equal(t, want, lines(definedSchema(t, "", more).Validate(t.Context(), thing(t, ""), nil)))
	}
}

func TestSchema_Validate_StatusSubresource(t *testing.T) {
	obj := thing(t, "")
	obj.Object["status"] = map[string]any{"phase": "Other", "unknown": int64(1)}
	assert.Equal(t, []string{`enum: status.phase: is "Other", the schema says one of "Ready"`, `unknown: status.unknown: the schema has no such field (the fields are phase)`},
		lines(definedSchema(t, "", "").Validate(t.Context(), obj, nil)))
	assert.Equal(t, []string{`warning: enum: status.phase: is "Other", the schema says one of "Ready" (the server ignores the status of a new object)`, `unknown: status.unknown: the schema has no such field (the fields are phase)`},
		lines(definedSchema(t, "", `, "subresources": {"status": {}}`).Validate(t.Context(), obj, nil)))
	scaled := definedSchema(t, `"replicas": {"type": "integer"}`, `, "subresources": {"scale": {"specReplicasPath": ".spec.replicas"}}`)
	assert.Equal(t, []string{`scale: spec.replicas: is -1, the scale subresource says at least 0 and at most 2147483647`},
		lines(scaled.Validate(t.Context(), thing(t, `"replicas": -1`), nil)))
}

func TestSchema_Validate_LeavesObjectAsItIs(t *testing.T) {
	s := definedSchema(t, `"a": {"type": "object", "default": {"c": 1}, "properties": {"b": {"type": "string", "default": "x"}, "c": {"type": "integer"}}}, "list": {"type": "array", "items": {"type": "object", "properties": {"d": {"type": "string"}}}}`, "")
	obj := thing(t, `"list": [{"d": null}, {"unknown": 1}], "unknown": {"x": 1}, "a": null`)
	before, err := json.Marshal(obj.Object)
	require.NoError(t, err)
	assert.Len(t, s.Validate(t.Context(), obj, nil).Problems, 2)
	after, err := json.Marshal(obj.Object)
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after))
}

func TestSchema_Validate_NilMaps(t *testing.T) {
	s := definedSchema(t, `"a": {"type": "string", "default": "x"}`, "")
	obj := thing(t, "")
	obj.Object["spec"] = map[string]any(nil)
	assert.Empty(t, lines(s.Validate(t.Context(), obj, nil)))
	want := []string{"required: metadata: has neither name nor generateName (set metadata.name)"}
	assert.Equal(t, want, lines(s.Validate(t.Context(), &unstructured.Object{}, nil)))
}

func TestSchema_Validate_NamesWhatIsNotChecked(t *testing.T) {
	for fields, want := range map[string]string{
		`"a": {"type": "string", "format": "other"}`:                                    "spec.a: the format other is unknown to Kubernetes",
		`"a": {"type": "string", "format": "isbn"}`:                                     "spec.a: the format isbn",
		`"a": {"type": "string", "pattern": "(?=x)"}`:                                   "spec.a: its pattern is not a regular expression of Go: error parsing regexp: invalid or unsupported Perl syntax: `(…",
		`"a": {"type": "string", "pattern": "` + strings.Repeat("x", 20_000) + `"}`:     "spec.a: its pattern is longer than 16 KiB",
		`"a": {"type": "string", "x-kubernetes-validations": [{"rule": "self != ''"}]}`: "the rule in x-kubernetes-validations that applies: without an evaluator",
		`"a": {"$ref": "#/components/schemas/missing"}`:                                 `spec.a: no schema "missing" in the document`,
	} {
		result := definedSchema(t, fields, "").Validate(t.Context(), thing(t, `"a": "x"`), nil)
		assert.Empty(t, lines(result))
		assert.Equal(t, []string{want}, result.NotChecked)
	}
}

// ruleCompiler is a RuleCompiler with fixed errors.
type ruleCompiler struct {
	compiled map[string]any
	errs     field.ErrorList
	err      error
}

func (r *ruleCompiler) Compile(openAPIV3 map[string]any) (schema.Rules, error) {
	r.compiled = openAPIV3
	return r, r.err
}

func (r *ruleCompiler) Validate(context.Context, map[string]any, map[string]any) field.ErrorList {
	return r.errs
}

func TestSchema_Validate_Rules(t *testing.T) {
	const fields = `"a": {"type": "string", "x-kubernetes-validations": [{"rule": "self != ''"}]}, "b": {"type": "integer"}`
	compiler := &ruleCompiler{errs: field.ErrorList{field.Invalid(field.NewPath("spec").Child("list").Index(2).Child("a"), "x", "must not be x")}}
	opts := &schema.ValidateOptions{Rules: compiler}
	result := definedSchema(t, fields, "").Validate(t.Context(), thing(t, `"a": "x"`), opts)
	assert.Equal(t, []string{`x-kubernetes-validations: spec.list[2].a: must not be x`}, lines(result))
	assert.Equal(t, []any{"spec", "list", 2, "a"}, result.Problems[0].Path)
	assert.EqualError(t, result.Err(), "spec.list[2].a: must not be x")

	assert.Empty(t, lines(definedSchema(t, fields, "").Validate(t.Context(), thing(t, `"b": 1`), opts)), "no rule applies")

	result = definedSchema(t, fields, "").Validate(t.Context(), thing(t, `"a": "x", "b": "y"`), opts)
	assert.Equal(t, []string{"the rule in x-kubernetes-validations that applies: the server evaluates them once the other problems are fixed"}, result.NotChecked)

	result = definedSchema(t, fields, "").Validate(t.Context(), thing(t, `"a": "x"`), &schema.ValidateOptions{Rules: &ruleCompiler{err: errors.New("broken")}})
	assert.Equal(t, []string{"the rule in x-kubernetes-validations that applies: broken"}, result.NotChecked)
}

func TestSchema_Validate_RulesOfFieldsNamedLikeKeywords(t *testing.T) {
	const fields = `"a": {"type": "object", "default": {"$ref": "x"}, "x-kubernetes-validations": [{"rule": "has(self.allOf)"}],
		"properties": {"$ref": {"type": "string"}, "allOf": {"type": "array", "items": {"type": "string"}}, "default": {"type": "string"}}}`
	compiler := &ruleCompiler{}
	definedSchema(t, fields, "").Validate(t.Context(), thing(t, `"a": {}`), &schema.ValidateOptions{Rules: compiler})
	compiled, err := json.Marshal(compiler.compiled["properties"].(map[string]any)["spec"])
	require.NoError(t, err)
	assert.JSONEq(t, `{"type": "object", "properties": {`+fields+`}}`, string(compiled))
}

// typedSchema returns the schema of Pods in a document with Go types.
func typedSchema(t testing.TB, schemas string) *schema.Schema {
	t.Helper()
	document, err := schema.ParseDocument([]byte(`{"components": {"schemas": {` + schemas + `}}}`))
	require.NoError(t, err)
	s, err := document.Kind(kschema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	require.NoError(t, err)
	require.NotNil(t, s)
	return s
}

const pod = `"io.k8s.api.core.v1.Pod": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}], "properties": {
	"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}, "spec": {"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}}},
	"io.k8s.api.core.v1.PodSpec": {"type": "object", "required": ["containers"], "properties": {
		"containers": {"type": "array", "items": {"default": {}, "allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"}]}},
		"restartPolicy": {"type": "string", "enum": ["Always", "Never"]}, "started": {"type": "string", "format": "date-time"}}},
	"io.k8s.api.core.v1.Container": {"type": "object", "required": ["name", "other"], "properties": {"name": {"type": "string", "default": ""}, "other": {"type": "string", "default": ""},
		"cpu": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"},
		"ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port"], "items": {"type": "object", "properties": {"port": {"type": "integer"}}}}}},
	"io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]}`

func TestSchema_Validate_GoTypes(t *testing.T) {
	s := typedSchema(t, pod)
	for spec, want := range map[string][]string{
		`"containers": [{"name": "a", "other": "x", "cpu": 1}], "restartPolicy": ""`:           nil,
		`"containers": [{"name": "a", "other": "x", "cpu": "100mm"}], "started": null`:         {`format: spec.containers[0].cpu: is "100mm", the schema says a quantity (write 500m, 2 or 1Gi)`},
		`"containers": [{"image": "a"}]`:                                                       {`required: spec.containers[0].name: is missing, the schema requires it (add it: a string)`, `warning: required: spec.containers[0].other: is missing, the schema requires it (add it: a string)`, `unknown: spec.containers[0].image: the schema has no such field (the fields are cpu, name, other, ports)`},
		`"containers": [{"name": "a", "other": "x", "ports": [{"port": 1}, {"port": 1}, {}]}]`: {`warning: x-kubernetes-list-type: spec.containers[0].ports[1]: has the same port 1 as another item, the schema says each once (a server-side apply rejects it: change or remove it)`, `warning: x-kubernetes-list-map-keys: spec.containers[0].ports[2]: has no port, a key of the list's items (a server-side apply rejects it: set port)`},
	} {
		obj, err := unstructured.Decode([]byte(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {` + spec + `}}`))
		require.NoError(t, err)
		result := s.Validate(t.Context(), obj, nil)
		assert.ElementsMatch(t, want, lines(result), spec)
		require.Len(t, result.NotChecked, 1)
		assert.Contains(t, result.NotChecked[0], "the validation of the API server in Go")
	}
}

// TestSchema_Validate_SecretValues quotes no value of a Secret in problems and hints.
func TestSchema_Validate_SecretValues(t *testing.T) {
	document, err := schema.ParseDocument([]byte(`{"components": {"schemas": {"io.k8s.api.core.v1.Secret": {"type": "object",
		"x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Secret"}], "properties": {
		"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}, "type": {"type": "string"}, "immutable": {"type": "boolean"},
		"data": {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}},
		"stringData": {"type": "object", "additionalProperties": {"type": "string"}}}}}}}`))
	require.NoError(t, err)
	s, err := document.Kind(kschema.GroupVersionKind{Version: "v1", Kind: "Secret"})
	require.NoError(t, err)
	for fields, want := range map[string]string{
		`"data": {"a": "hunter2!"}`:       `format: data.a: is a value, the schema says byte (encode it as base64)`,
		`"data": "hunter2"`:               `type: data: is a value, the schema says an object`,
		`"stringData": {"a": 4711}`:       `type: stringData.a: is a value, the schema says a string`,
		`"stringData": {"a": {"b": "c"}}`: `type: stringData.a: is an object, the schema says a string`,
		`"immutable": "true"`:             `type: immutable: is "true", the schema says a boolean (write true without quotes)`,
		`"type": 5`:                       `type: type: is 5, the schema says a string (write "5" in quotes)`,
	} {
		obj, err := unstructured.Decode([]byte(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, ` + fields + `}`))
		require.NoError(t, err)
		assert.Equal(t, []string{want}, lines(s.Validate(t.Context(), obj, nil)), fields)
	}
}

func TestSchema_Validate_HostileSchemas(t *testing.T) {
	const kind = `"type": "object", "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}]`
	var doubling strings.Builder
	for i := range 60 {
		fmt.Fprintf(&doubling, `, "s%d": {"anyOf": [{"$ref": "#/components/schemas/s%d"}, {"$ref": "#/components/schemas/s%d"}]}`, i, i+1, i+1)
	}
	for name, c := range map[string]struct{ schemas, want string }{
		"circle":      {`"a": {` + kind + `, "allOf": [{"$ref": "#/components/schemas/b"}, {"$ref": "#/components/schemas/b"}]}, "b": {"allOf": [{"$ref": "#/components/schemas/a"}, {"type": "object"}]}`, "the rest of the object from the object"},
		"exponential": {`"a": {` + kind + `, "allOf": [{"$ref": "#/components/schemas/s0"}, {"type": "object"}]}` + doubling.String() + `, "s60": {"type": "string"}`, "the schema is too complex"},
		"patterns":    {`"a": {` + kind + `, "additionalProperties": {"type": "string", "pattern": "(x+x+){500}y` + strings.Repeat("x*", 5000) + `"}}`, "the schema is too complex"},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Object{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "text": strings.Repeat("x", 100_000)}}
			result := typedSchema(t, c.schemas).Validate(t.Context(), obj, nil)
			assert.Contains(t, strings.Join(result.NotChecked, "\n"), c.want)
		})
	}
}

func TestSchema_Validate_ManyProblems(t *testing.T) {
	obj := thing(t, "")
	spec := obj.Object["spec"].(map[string]any)
	for i := range 5000 {
		spec[fmt.Sprint("unknown", i)] = "x"
	}
	result := definedSchema(t, `"a": {"type": "string"}`, "").Validate(t.Context(), obj, nil)
	assert.Len(t, result.Problems, 1000)
	assert.Equal(t, []string{"more than 1000 problems are not listed"}, result.NotChecked)
}

// FuzzSchema_Validate reads any document and validates any object by each of its kinds.
func FuzzSchema_Validate(f *testing.F) {
	f.Add(`{"components": {"schemas": {`+pod+`}}}`, `{"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": 1, "ports": [{}, {}]}]}}`)
	f.Add(`{"paths": {"/status": {"put": {"x-kubernetes-group-version-kind": {"version": "v1", "kind": "Pod"}}}}, "components": {"schemas": {"v1.Pod": {"x-kubernetes-group-version-kind": [{"version": "v1", "kind": "Pod"}],
		"properties": {"a": {"not": {"enum": [null, 1.5, {}]}, "nullable": true, "default": {}}, "b": {"x-kubernetes-embedded-resource": true, "format": "ipv4", "pattern": "(", "oneOf": [{}]}}}}}}`,
		`{"kind": "Pod", "a": null, "b": {"metadata": {"labels": {"": null}}}, "c": [[null]]}`)
	f.Fuzz(func(t *testing.T, document, object string) {
		parsed, err := schema.ParseDocument([]byte(document))
		if err != nil {
			return
		}
		obj, err := unstructured.Decode([]byte(object))
		if err != nil {
			return
		}
		before := obj.DeepCopy()
		for gvk := range parsed.Kinds() {
			s, err := parsed.Kind(gvk)
			if err != nil {
				continue
			}
			result := s.Validate(t.Context(), obj, nil)
			if len(result.Problems) > 1000 {
				t.Fatalf("%d problems", len(result.Problems))
			}
			assert.Equal(t, before.Object, obj.Object, "the object changed")
		}
	})
}
