//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWriteJSONSchemas_RulesOfKubeconform(t *testing.T) {
	documents := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(documents, "v1.json"), []byte(`{"components": {"schemas": {
		"io.k8s.api.core.v1.Pod": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "meta": {"allOf": [{"$ref": "#/components/schemas/io.k8s.Meta"}]}},
			"x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}]},
		"io.k8s.Meta": {"type": "object", "properties": {"name": {"type": "string"}, "self": {"$ref": "#/components/schemas/io.k8s.Meta"}}},
		"io.k8s.Unused": {"type": "object"},
		"com.example.v1.Foo": {"type": "object", "properties": {"port": {"format": "int-or-string"}, "any": {"type": "object", "additionalProperties": true, "properties": {}}, "properties": {"type": "string"}},
			"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Foo"}]}}}}`), 0o600))
	dir := t.TempDir()
	require.NoError(t, writeJSONSchemas(documents, dir))
	for file, want := range map[string]string{
		"v1_v1_pod.json": `{"$ref": "#/definitions/io.k8s.api.core.v1.Pod", "definitions": {
			"io.k8s.api.core.v1.Pod": {"type": ["object", "null"], "required": ["a"], "additionalProperties": false, "properties": {"a": {"type": "string"},
				"meta": {"allOf": [{"$ref": "#/definitions/io.k8s.Meta"}]}}, "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}]},
			"io.k8s.Meta": {"type": ["object", "null"], "additionalProperties": false, "properties": {"name": {"type": ["string", "null"]}, "self": {"$ref": "#/definitions/io.k8s.Meta"}}}}}`,
		"example.com_v1_foo.json": `{"$ref": "#/definitions/com.example.v1.Foo", "definitions": {
			"com.example.v1.Foo": {"type": "object", "additionalProperties": false, "properties": {"port": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
				"any": {"type": "object", "additionalProperties": true, "properties": {}}, "properties": {"type": "string"}}, "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Foo"}]}}}`,
	} {
		data, err := os.ReadFile(filepath.Join(dir, file)) //nolint:gosec // the test's folder
		require.NoError(t, err)
		assert.JSONEq(t, want, string(data), file)
	}
}

func TestNewColumn_CountsOutcomes(t *testing.T) {
	var outcomes map[string]outcome
	for name, parse := range map[string]struct {
		function func(_, _ []byte) (map[string]outcome, error)
		output   any
		errs     string
	}{
		"kubeconform": {parseKubeconform, map[string]any{"resources": []any{
			map[string]any{"filename": "0.json", "status": "statusValid"}, map[string]any{"filename": "1.json", "status": "statusInvalid"},
			map[string]any{"filename": "2.json", "status": "statusError"},
			map[string]any{"filename": "3.json", "status": "statusError", "msg": "error while parsing: missing 'kind' key"},
		}}, ""},
		"kubectl-validate": {parseKubectlValidate, map[string]any{
			"0.json": []any{map[string]any{"status": "Success"}}, "1.json": []any{map[string]any{"status": "Failure", "message": "x"}},
			"2.json": []any{map[string]any{"status": "Failure", "message": "failed to retrieve validator: no"}}, "3.json": []any{map[string]any{"status": "Failure"}},
		}, ""},
		"anyctl": {parseAnyctl, map[string]any{"findings": []any{
			map[string]any{"file": "0.json", "level": "warning", "keyword": "deprecated"}, map[string]any{"file": "1.json", "level": "error", "keyword": "type"},
			map[string]any{"file": "2.json", "level": "error", "keyword": "no-schema"},
		}}, "error: 3.json: document 1, line 1: Object 'Kind' is missing"},
	} {
		data, err := json.Marshal(parse.output)
		require.NoError(t, err)
		outcomes, err = parse.function(data, []byte(parse.errs))
		require.NoError(t, err)
		c := newColumn(&validator{name: name}, &runResult{outcomes: outcomes}, []object{
			{"0.json", true, true}, {"1.json", true, false}, {"2.json", false, true}, {"3.json", false, true},
		})
		assert.Equal(t, counts{missed: 1, falseAlarms: 1}, c.custom, name)
		assert.Equal(t, counts{notJudged: 1}, c.builtIn, name)
	}
}
