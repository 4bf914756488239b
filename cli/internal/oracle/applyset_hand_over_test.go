package oracle

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/client"
)

// TestApplySet_HandedToKubectlAndBack lets each program remove a field and prune an object that the other has applied.
func TestApplySet_HandedToKubectlAndBack(t *testing.T) {
	o := newSetOracle(t)
	for mode, output := range map[string]struct{ flag, handedOver string }{
		"":               {"", "configmap/one handed over\nsecret/password handed over\n"},
		" --server-side": {" -o 'jsonpath={.kind}/{.metadata.managedFields[0].manager}{\"\\n\"}'", "ConfigMap/kubectl\nSecret/kubectl\n"},
	} {
		namespace := client.NewKeptNamespace(t, o.client)
		run := func(p *program, line, objects string) result {
			return p.run(t, &oracleCase{line: line + " --applyset=set -n $NS", stdin: objects, env: []string{"KUBECTL_APPLYSET=true"}}, namespace, o.kubectl)
		}
		data := func() string {
			return o.kubectl.run(t, &oracleCase{line: "get cm one -o jsonpath={.data}"}, namespace, o.kubectl).stdout
		}
		r := run(o.kubectl, "apply --prune -f -"+mode, docs(setRed, setTwo))
		require.Zero(t, r.code, r.stderr)
		r = run(o.anyctl, "apply --prune -f -", docs(setOne))
		assert.Contains(t, r.stderr, `is managed by tooling "kubectl/v`)
		r = run(o.anyctl, "apply --prune -f - --adopt", docs(setOne))
		require.Zero(t, r.code, r.stderr)
		assert.Equal(t, sortedLines("configmap/one adopted\nconfigmap/two adopted\nconfigmap/one serverside-applied\nconfigmap/two pruned\n"), sortedLines(r.stdout))
		assert.Equal(t, `{"color":"blue"}`, data(), "a field of kubectl is gone")

		r = run(o.anyctl, "apply --prune -f -", docs(setRed, setSecret))
		require.Zero(t, r.code, r.stderr)
		r = run(o.kubectl, "apply --prune --server-side -f -", docs(setOne))
		assert.Contains(t, r.stderr, `is managed by tooling "anykind" instead of "kubectl"`)
		r = run(o.anyctl, "apply hand-over"+output.flag, "")
		require.Zero(t, r.code, r.stderr)
		assert.Equal(t, sortedLines(output.handedOver), sortedLines(r.stdout))
		r = run(o.kubectl, "apply --prune --server-side -f -", docs(setOne))
		assert.Equal(t, "configmap/one serverside-applied\nsecret/password pruned\n", r.stdout, r.stderr)
		assert.Equal(t, `{"color":"blue"}`, data(), "a field of anyctl is gone")
	}
}
