package validate_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/command/validate"
)

const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    deprecated: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, maximum: 9}
              color: {type: string}
            x-kubernetes-validations:
            - rule: self.size > 1
`

const widgets = `# two widgets
apiVersion: example.com/v1
kind: Widget
metadata:
  name: good
spec: {size: 1}
---
apiVersion: example.com/v1
kind: Widget
metadata:
  name: bad
spec:
  size: "3"
  colour: red
`

// folder writes saved schemas of kind Widget of v1 with the given fields of spec.
func folder(t *testing.T, name, fields string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.Mkdir(dir, 0o700))
	write(t, dir, "index.json", `{"documents": {"apis/example.com/v1": "1"}}`)
	write(t, dir, "deprecations.json", `{"warnings": {"example.com/v1 Widget": ""}}`)
	write(t, dir, "apis_example.com_v1@1.json", `{"components": {"schemas": {"com.example.v1.Widget": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Widget"}],
		"properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}, "spec": {"type": "object", "properties": {`+fields+`}}}}}}}`)
	return dir
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// run runs the command without a cluster.
func run(t *testing.T, in string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	state := &command.State{
		Streams:    command.Streams{In: strings.NewReader(in), Out: &out, Err: &errs},
		Connection: flags.NewConnection(),
	}
	state.Connection.Kubeconfig = filepath.Join(t.TempDir(), "missing")
	root := command.Root(state, &cobra.Command{Use: "anyctl"}, validate.Commands(state)...)
	root.SetArgs(append([]string{"validate"}, args...))
	code = exit.Report(&errs, root.ExecuteContext(t.Context()))
	return out.String(), errs.String(), code
}

func TestCommand_Text(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, dir, "crd.yaml", definition)
	write(t, dir, "widgets.yaml", widgets)
	none := folder(t, "none", "")
	stdout, stderr, code := run(t, "", "-f", "widgets.yaml", "-f", "crd.yaml", "--schemas", none)
	assert.Equal(t, `widgets.yaml:2: Widget "good": warning: Widget of example.com/v1 is deprecated
widgets.yaml:8: Widget "bad": warning: Widget of example.com/v1 is deprecated
widgets.yaml:13: Widget "bad": spec.size: is "3", the schema says an integer (write 3 without quotes)
widgets.yaml:14: Widget "bad": spec.colour: the schema has no such field (did you mean color?)
crd.yaml:1: CustomResourceDefinition "widgets.example.com": no schema of the kind
not checked of Widget of example.com/v1: the rule in x-kubernetes-validations that applies: without an evaluator
not checked of Widget of example.com/v1: the rule in x-kubernetes-validations that applies: the server evaluates them once the other problems are fixed
3 objects: 1 not valid, 1 without a schema
`, stdout)
	assert.Empty(t, stderr)
	assert.Equal(t, 1, code)
}

func TestCommand_SeveralServers(t *testing.T) {
	first := folder(t, "1.34", `"size": {"type": "integer"}, "colour": {"type": "string"}`)
	second := folder(t, "1.37", `"size": {"type": "integer"}`)
	third := filepath.Join(t.TempDir(), "1.38")
	require.NoError(t, os.Mkdir(third, 0o700))
	write(t, third, "index.json", `{"documents": {}}`)
	manifest := strings.ReplaceAll(widgets, `"3"`, "3")
	stdout, _, code := run(t, manifest, "-f", "-", "--schemas", first+","+second, "--schemas", third)
	assert.Equal(t, `STDIN:2: Widget "good": no schema of the kind [1.38]
STDIN:8: Widget "bad": no schema of the kind [1.38]
STDIN:14: Widget "bad": spec.colour: the schema has no such field (the fields are size) [1.37]
2 objects: 1 not valid, 2 without a schema
1.34: 2 objects: valid
1.37: 2 objects: 1 not valid
1.38: 2 objects: 2 without a schema
`, stdout)
	assert.Equal(t, 1, code)
}

func TestCommand_DeprecatedVersions(t *testing.T) {
	current := folder(t, "1.34", `"size": {}`)
	deprecating := folder(t, "1.37", `"size": {}`)
	write(t, deprecating, "deprecations.json", `{"warnings": {"example.com/v1 Widget": "example.com/v1 Widget is deprecated; use example.com/v2 Widget"}}`)
	silent := folder(t, "silent", `"size": {}`)
	require.NoError(t, os.Remove(filepath.Join(silent, "deprecations.json")))
	forbidden := folder(t, "forbidden", `"size": {}`)
	write(t, forbidden, "deprecations.json", `{"unknown": {"example.com/v1 Widget": "widgets is forbidden"}}`)
	const manifest = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}}"
	stdout, _, code := run(t, manifest, "-f", "-", "--schemas", current+","+deprecating)
	assert.Equal(t, `STDIN:1: Widget "a": warning: example.com/v1 Widget is deprecated; use example.com/v2 Widget [1.37]
1 object: valid
1.34: 1 object: valid
1.37: 1 object: valid
`, stdout)
	assert.Zero(t, code)
	stdout, _, _ = run(t, manifest, "-f", "-", "--schemas", silent)
	assert.Equal(t, "not checked of Widget of example.com/v1: whether the version is deprecated: the folder of schemas does not say it (save it with --save-schemas)\n"+
		"1 object: valid\n", stdout)
	stdout, _, _ = run(t, manifest, "-f", "-", "--schemas", forbidden)
	assert.Contains(t, stdout, "not checked of Widget of example.com/v1: whether the version is deprecated: widgets is forbidden\n")
}

func TestCommand_ExitCodes(t *testing.T) {
	known := folder(t, "known", `"size": {"type": "integer"}, "colour": {"type": "string"}`)
	for name, c := range map[string]struct {
		in, stderr string
		args       []string
		want       int
	}{
		"valid":             {"{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}}", "", nil, 0},
		"not valid":         {widgets, "", nil, 1},
		"no schema":         {"{apiVersion: example.com/v2, kind: Widget, metadata: {name: a}}", "", nil, 2},
		"broken file":       {"a: [", "STDIN: document 1, line 2", nil, 2},
		"broken and others": {widgets + "---\na: [", "STDIN: document 3", nil, 1},
		"no folder":         {widgets, "open schemas", []string{"--schemas", "missing"}, 2},
		"format":            {widgets, "allowed formats are: github,json,sarif,text", []string{"-o", "yaml"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, code := run(t, c.in, append([]string{"-f", "-", "--schemas", known}, c.args...)...)
			assert.Equal(t, c.want, code)
			assert.Contains(t, stderr, c.stderr)
		})
	}
	_, stderr, code := run(t, "")
	assert.Equal(t, 2, code)
	assert.Contains(t, stderr, "must specify -f or --save-schemas")
}

func TestCommand_Formats(t *testing.T) {
	dir := folder(t, "known", `"size": {"type": "integer", "description": "Deprecated: use color"}, "color": {"type": "string"}`)
	stdout, _, _ := run(t, widgets, "-f", "-", "--schemas", dir, "-o", "github")
	assert.Equal(t, `::warning file=STDIN,line=6,title=Widget "good"::spec.size: Deprecated: use color
::warning file=STDIN,line=13,title=Widget "bad"::spec.size: Deprecated: use color
::error file=STDIN,line=13,title=Widget "bad"::spec.size: is "3", the schema says an integer (write 3 without quotes)
::error file=STDIN,line=14,title=Widget "bad"::spec.colour: the schema has no such field (did you mean color?)
2 objects: 1 not valid
`, stdout)

	stdout, _, _ = run(t, widgets, "-f", "-", "--schemas", dir, "-o", "json")
	var report struct {
		Objects, Invalid int
		Findings         []struct {
			File, Level, Field, Keyword string
			Line                        int
		}
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &report))
	assert.Equal(t, []int{2, 1}, []int{report.Objects, report.Invalid})
	require.Len(t, report.Findings, 4)
	assert.Equal(t, "unknown", report.Findings[3].Keyword)
	assert.Equal(t, 14, report.Findings[3].Line)

	stdout, _, _ = run(t, widgets, "-f", "-", "--schemas", dir, "-o", "sarif")
	var log struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results []struct {
				RuleID, Level string
				Message       struct{ Text string }
				Locations     []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &log))
	assert.Equal(t, "2.1.0", log.Version)
	assert.Len(t, log.Runs[0].Tool.Driver.Rules, 3)
	result := log.Runs[0].Results[2]
	assert.Equal(t, []any{"type", "error", "STDIN", 13}, []any{result.RuleID, result.Level, result.Locations[0].PhysicalLocation.ArtifactLocation.URI, result.Locations[0].PhysicalLocation.Region.StartLine})
	assert.Equal(t, `Widget "bad": spec.size: is "3", the schema says an integer (write 3 without quotes)`, result.Message.Text)
}
