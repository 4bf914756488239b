package plans_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/command/change"
	"github.com/anykind/anykind/cli/internal/command/plans"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
)

// environment is a namespace of the sandbox for commands.
type environment struct {
	client    *dynamic.Client
	namespace string
}

func newEnvironment(t *testing.T) *environment {
	t.Helper()
	c := client.Connect(t, "admin")
	return &environment{c, client.NewNamespace(t, c)}
}

type result struct {
	stdout, stderr string
	code           int
}

// run runs a command line with files as standard input. NAMESPACE stands for the namespace.
func (e *environment) run(t *testing.T, manifest string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	state := &command.State{
		Streams:    command.Streams{In: strings.NewReader(strings.ReplaceAll(manifest, "NAMESPACE", e.namespace)), Out: &stdout, Err: &stderr},
		Connection: flags.NewConnection(),
	}
	state.Connection.Kubeconfig = cluster.Kubeconfig(t)
	state.Connection.CacheDir = t.TempDir()
	state.Connection.FieldManager = "anyctl"
	root := command.Root(state, &cobra.Command{Use: "anyctl"}, slices.Concat(plans.Commands(state), change.Commands(state))...)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	state.Connection.Close()
	code := exit.Report(&stderr, err)
	mask := strings.NewReplacer(e.namespace, "NAMESPACE")
	return result{mask.Replace(stdout.String()), mask.Replace(stderr.String()), code}
}

const settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red}}\n"

func TestPlan_Output(t *testing.T) {
	e := newEnvironment(t)
	line := func(output string) []string {
		return []string{"plan", "-f", "-", "-n", e.namespace, "--copy=off", "-o", output}
	}
	want := `create ConfigMap "NAMESPACE/settings" (planned by the server)
@@ -0,0 +1,7 @@
+apiVersion: v1
+data:
+  color: red
+kind: ConfigMap
+metadata:
+  name: settings
+  namespace: NAMESPACE

Plan: 1 to create.
`
	assert.Equal(t, result{want, "", 0}, e.run(t, settings, line("text")...))
	require.Zero(t, e.run(t, settings, "apply", "-f", "-", "-n", e.namespace).code)
	changed := strings.ReplaceAll(settings, "red", "blue")
	want = `configure ConfigMap "NAMESPACE/settings" (planned by the server)
  .data.color is managed by anyctl
@@ -1,6 +1,6 @@
 apiVersion: v1
 data:
-  color: red
+  color: blue
 kind: ConfigMap
 metadata:
   name: settings

Plan: 1 to configure.
`
	assert.Equal(t, result{want, "", 0}, e.run(t, changed, line("text")...))
	want = "**Plan:** 1 to configure.\n\n| action | object | details |\n| --- | --- | --- |\n| configure | `ConfigMap \"NAMESPACE/settings\"` | `.data.color` |\n"
	assert.Equal(t, result{want, "", 0}, e.run(t, changed, line("short")...))
	r := e.run(t, changed, line("json")...)
	var planned struct {
		Changes []struct{ Object, Action string }
	}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &planned))
	require.Len(t, planned.Changes, 1)
	assert.Equal(t, "ConfigMap NAMESPACE/settings", planned.Changes[0].Object)
	assert.Equal(t, "configure", planned.Changes[0].Action)

	r = e.run(t, strings.ReplaceAll(settings, "name: settings", "name: A_"), line("short")...)
	assert.Equal(t, 1, r.code, "an object is rejected")
	assert.Contains(t, r.stdout, "rejected")
	assert.Empty(t, r.stderr)
}

func TestApply_Plan(t *testing.T) {
	e := newEnvironment(t)
	file := filepath.Join(t.TempDir(), "a.plan")
	require.NoError(t, os.WriteFile(file, nil, 0o644)) //nolint:gosec // plan makes it private
	set := []string{"--prune", "--applyset=set", "-n", e.namespace}
	both := settings + "---\n{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {x: b25l}}\n"
	r := e.run(t, both, append([]string{"apply", "-f", "-"}, set...)...)
	require.Zero(t, r.code, r.stderr)
	r = e.run(t, strings.ReplaceAll(settings, "red", "blue"), append([]string{"plan", "-f", "-", "--copy=off", "--save", file}, set...)...)
	require.Zero(t, r.code, r.stderr)
	assert.Contains(t, r.stdout, "Plan: 1 to configure, 1 to prune.")
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	secrets := client.Resource(t, e.client, "secrets").Namespace(e.namespace)
	_, err = secrets.Patch(t.Context(), "s", types.MergePatchType, []byte(`{"data":{"y":"b25l"}}`), nil)
	require.NoError(t, err)
	want := "error: apply the plan: Secret \"NAMESPACE/s\" was changed since the plan (plan again)\n"
	assert.Equal(t, result{"", want, 1}, e.run(t, "", "apply", "--plan", file))
	r = e.run(t, strings.ReplaceAll(settings, "red", "blue"), append([]string{"plan", "-f", "-", "--copy=off", "--save", file}, set...)...)
	require.Zero(t, r.code, r.stderr)
	assert.Equal(t, result{"configmap/settings serverside-applied\nsecret/s pruned\n", "", 0}, e.run(t, "", "apply", "--plan", file))
	elsewhere := strings.ReplaceAll(settings, "name: settings", "name: NAMESPACE, namespace: default")
	r = e.run(t, elsewhere, append([]string{"plan", "-f", "-", "-o", "short"}, set...)...)
	assert.Contains(t, r.stdout, "**Plan:** 1 to create, 1 to prune.", "a set may have several namespaces")
	r = e.run(t, elsewhere, "plan", "-f", "-", "-n", e.namespace)
	assert.Contains(t, r.stderr, "does not match the namespace")
	r = e.run(t, "", "apply", "--plan", file, "-f", "-")
	assert.Equal(t, result{"", "error: --plan is incompatible with -f and --selector: the plan has the objects\n", 1}, r)
}

// copyScript serves the sandbox itself as a copy: it prints a kubeconfig, and ends when its standard input is closed.
const copyScript = `#!/bin/sh
echo "$@" > LOG
echo KUBECONFIG
cat > /dev/null
echo ended >> LOG
`

func TestPlan_CopyProgram(t *testing.T) {
	e := newEnvironment(t)
	folder := t.TempDir()
	program := filepath.Join(folder, "anyctl-copy")
	log := filepath.Join(folder, "log")
	script := strings.NewReplacer("LOG", log, "KUBECONFIG", cluster.Kubeconfig(t)).Replace(copyScript)
	require.NoError(t, os.WriteFile(program, []byte(script), 0o700)) //nolint:gosec // a program
	client.DeleteAtEnd(t, client.Resource(t, e.client, "namespaces"), e.namespace+"-new")
	objects := "{apiVersion: v1, kind: Namespace, metadata: {name: NAMESPACE-new}}\n---\n" +
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: NAMESPACE-new}}\n"

	r := e.run(t, objects, "plan", "-f", "-", "-o", "short", "--copy=off")
	require.Zero(t, r.code, r.stderr)
	assert.Contains(t, r.stdout, "1 to create, 1 not planned")
	t.Setenv("PATH", "/nowhere")
	r = e.run(t, objects, "plan", "-f", "-", "-o", "short")
	assert.Contains(t, r.stdout, "the program anyctl-copy is neither beside anyctl nor on PATH (go install ")
	r = e.run(t, objects, "diff", "-f", "-")
	assert.Equal(t, result{"", "Error from server (NotFound): namespaces \"NAMESPACE-new\" not found\n", 2}, r, "the error of kubectl")
	assert.NoFileExists(t, log)

	t.Setenv("PATH", folder+":/bin:/usr/bin")
	r = e.run(t, objects, "plan", "-f", "-", "-o", "short")
	require.Zero(t, r.code, r.stdout)
	assert.Contains(t, r.stdout, "planned by the copy")
	assert.Contains(t, r.stdout, "2 to create")
	data, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.Equal(t, "serve --kubeconfig "+cluster.Kubeconfig(t)+"\nended\n", string(data))

	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\nexit 3\n"), 0o700)) //nolint:gosec // a program
	r = e.run(t, objects[strings.Index(objects, "---")+4:]+"---\n{apiVersion: v1, kind: Namespace, metadata: {name: NAMESPACE-other}}\n---\n"+
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: NAMESPACE-other}}\n", "plan", "-f", "-", "-o", "short", "--copy", program)
	assert.Contains(t, r.stdout, "it ended without the path of a kubeconfig")
}
