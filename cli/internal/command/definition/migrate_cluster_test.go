package definition

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

// result is the effect of a command.
type result struct {
	stdout, stderr string
	code           int
}

func run(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	state := &command.State{
		Streams:    command.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr},
		Connection: flags.NewConnection(),
	}
	state.Connection.Kubeconfig = cluster.Kubeconfig(t)
	state.Connection.CacheDir = t.TempDir()
	root := command.Root(state, &cobra.Command{Use: "anyctl"}, Commands(state)...)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	state.Connection.Close()
	code := exit.Report(&stderr, err)
	return result{stdout.String(), stderr.String(), code}
}

const pegDefinition = `{"metadata": {"name": "pegs.GROUP"}, "spec": {
	"group": "GROUP", "scope": "Cluster", "names": {"plural": "pegs", "singular": "peg", "kind": "Peg"}, "versions": [
		{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}},
		{"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}}
	]}}`

// createPegs creates a definition with two objects and changes its storage version. It returns the name of the definition.
func createPegs(t *testing.T) string {
	t.Helper()
	c := client.Connect(t, "admin")
	group := fmt.Sprintf("g%d.definition.example.com", rand.Uint32())
	name := "pegs." + group
	definitions := client.Resource(t, c, definitionType)
	definition := &unstructured.Object{}
	require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(pegDefinition, "GROUP", group)), &definition.Object))
	_, err := definitions.Create(t.Context(), definition, nil)
	require.NoError(t, err)
	client.DeleteAtEnd(t, definitions, name)
	_, err = definitions.Wait(t.Context(), name, dynamic.Condition("Established"))
	require.NoError(t, err)
	pegs := client.Resource(t, c, name)
	for _, peg := range []string{"a", "b"} {
		_, err = pegs.Create(t.Context(), &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": peg}}}, nil)
		require.NoError(t, err)
	}
	_, _, err = definitions.Upsert(t.Context(), name, func(obj *unstructured.Object) error {
		if err := unstructured.Set(obj, false, "spec", "versions", "0", "storage"); err != nil {
			return err
		}
		return unstructured.Set(obj, true, "spec", "versions", "1", "storage")
	}, nil)
	require.NoError(t, err)
	return name
}

func TestCRD_Migrate(t *testing.T) {
	name := createPegs(t)
	line := "customresourcedefinition.apiextensions.k8s.io/" + name
	r := run(t, "crd", "migrate", name, "--dry-run")
	assert.Equal(t, result{line + " migrated to v2 (2 objects, v1 pruned) (server dry run)\n", "", 0}, r)
	const stored = "-o=jsonpath={.kind} {.metadata.name} {.status.storedVersions}"
	r = run(t, "crd", "migrate", name, "--dry-run", stored)
	assert.Equal(t, result{"CustomResourceDefinition " + name + ` ["v2"]`, line + " migrated to v2 (2 objects, v1 pruned) (server dry run)\n", 0}, r)
	r = run(t, "crd", "migrate", "none.example.com", name, "--method=client")
	assert.Equal(t, 1, r.code)
	assert.Equal(t, line+" migrated to v2 (2 objects, 2 rewritten, v1 pruned)\n", r.stdout)
	assert.Equal(t, "Error from server (NotFound): customresourcedefinitions.apiextensions.k8s.io \"none.example.com\" not found\n", r.stderr)
	r = run(t, "crd", "migrate", name, stored)
	assert.Equal(t, result{"CustomResourceDefinition " + name + ` ["v2"]`, line + " unchanged in v2 (2 objects)\n", 0}, r)
	r = run(t, "crd", "migrate", name, "-o=name")
	assert.Equal(t, result{line + "\n", line + " unchanged in v2 (2 objects)\n", 0}, r)
	r = run(t, "crd", "migrate", "--all")
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Contains(t, r.stdout, line+" unchanged in v2 (2 objects)\n")
	r = run(t, "__complete", "crd", "migrate", name[:8])
	assert.Contains(t, r.stdout, name+"\n")
}

const denyPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [GROUP], apiVersions: ["*"], operations: [UPDATE], resources: [pegs]}]}
  validations: [{expression: "object.metadata.name != 'b'", message: not by migrations}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME, validationActions: [Deny]}
`

func TestCRD_MigrateListsFailedObjects(t *testing.T) {
	name := createPegs(t)
	c := client.Connect(t, "admin")
	policy := strings.NewReplacer("NAME", name, "GROUP", strings.TrimPrefix(name, "pegs.")).Replace(denyPolicy)
	for found, err := range c.ForObjects(t.Context(), unstructured.NewYAMLDecoder(strings.NewReader(policy)).All()) {
		require.NoError(t, err)
		_, err = found.Resource.Create(t.Context(), found.Object, nil)
		require.NoError(t, err)
		client.DeleteAtEnd(t, found.Resource, name)
	}
	require.EventuallyWithT(t, func(ct *assert.CollectT) {
		r := run(t, "crd", "migrate", name, "--dry-run")
		assert.Equal(ct, 1, r.code)
	}, 30*time.Second, 100*time.Millisecond)
	r := run(t, "crd", "migrate", name, "--method=client")
	assert.Equal(t, 1, r.code)
	assert.Empty(t, r.stdout)
	object, summary, _ := strings.Cut(r.stderr, "\n")
	assert.Contains(t, object, "error: "+name+" \"b\": ")
	assert.Contains(t, object, "not by migrations")
	assert.Equal(t, "error: "+name+": 1 of 2 objects failed, status.storedVersions is not changed\n", summary)
}

func TestCRD_MigrateErrors(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "error: either names or --all is required"},
		{[]string{"a", "--all"}, "error: either names or --all is required"},
		{[]string{"a", "-o=none"}, "error: unable to match a printer suitable for the output format \"none\""},
		{[]string{"a", "--method=none"}, "error: Invalid method value (none). Must be \"auto\", \"server\", or \"client\".\n"},
	} {
		r := run(t, append([]string{"crd", "migrate"}, c.args...)...)
		assert.Equal(t, 1, r.code, "%q", c.args)
		assert.Contains(t, r.stderr, c.want, "%q", c.args)
	}
}
