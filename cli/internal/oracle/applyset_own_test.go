package oracle

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/client"
)

// setLine is a line of anyctl about the set of a namespace, with a pattern of its output.
type setLine struct {
	// before is a line of kubectl.
	before     string
	line, want string
	// stdin is read by -f -.
	stdin string
	fails bool
}

const statusHeader = `^NAMESPACE +OBJECT +STATUS +DRIFT +FIELD +MANAGER +AGE +MESSAGE\n`

// setObjects are the objects of the lines. The password of the Secret is "secret".
var setObjects = docs(setOne, setTwo, setSecret)

// setBalancer is never ready: the sandbox has no cloud.
const setBalancer = "apiVersion: v1\nkind: Service\nmetadata: {name: balancer}\nspec: {type: LoadBalancer, ports: [{port: 80}]}\n"

func TestAnyctl_Sets(t *testing.T) {
	o := newSetOracle(t)
	for name, lines := range map[string][]setLine{
		"status": {
			{"", "status --applyset=set -n $NS", `^error: the set of Secret "\S+/set" has no objects\n$`, "", true},
			{"", "apply --prune --applyset=set -n $NS -f -", "", setObjects, false},
			{"", "status --applyset=set -n $NS", statusHeader + `\S+ +configmap/one +Current +- +- +- +-\n\S+ +configmap/two .*\n\S+ +secret/password .*\n$`, "", false},
			{"", "status --applyset=set -n $NS -f -", statusHeader + `\S+ +configmap/one +Current +- +- +- +-\n`, setObjects, false},
			{"", "status --applyset=set -n $NS -f -", `^error: resource mapping not found for name: "a" namespace: "" from "STDIN": no matches for kind "Tree" in version "none.example.com/v1"\n  STDIN: document 1, line 1: `, docs(setUnknown), true},
			{"delete cm two", "status --applyset=set -n $NS -f -", `\n\S+ +configmap/two +NotFound +missing +- +- +-\n`, setObjects, true},
			{"", "status --applyset=set -n $NS -f -", `\n\S+ +secret/password +Current +left the set +- +- +-\n`, setOne, true},
			{
				"patch cm one --type=merge -p {'\"data\":{\"color\":\"green\"}'}", "status --applyset=set -n $NS -f -",
				`\n\S+ +configmap/one +Current +changed +\.data\.color +kubectl-patch +\d+s +"blue" → "green"\n`, setObjects, true,
			},
			{
				"patch secret password --type=merge -p '{\"stringData\":{\"password\":\"more\"}}'", "status --applyset=set -n $NS -f -",
				`\n\S+ +secret/password +Current +changed +\.data\.password +kubectl-patch +\d+s\n$`, setObjects, true,
			},
			{
				"patch cm one --type=merge -p '{\"data\":{\"color\":\"blue\"}}'", "status --applyset=set -n $NS -f -",
				`\n\S+ +configmap/one +Current +not owned +\.data\.color +kubectl-patch +\d+s\n`, setObjects, true,
			},
			{"", "apply --prune --applyset=set -n $NS -f - --force-conflicts", "", setObjects, false},
			{"", "status --applyset=set -n $NS -f -", "", setObjects, false},
		},
		"status of a scaled workload": {
			{"", "apply --prune --applyset=set -n $NS -f -", "", webDeployment, false},
			{
				"scale deploy web --replicas=5", "status --applyset=set -n $NS -f -",
				`\n\S+ +deployment.apps/web +\S+ +changed +\.spec\.replicas +kubectl \(scale\) +- +2 → 5\n`, webDeployment, true,
			},
		},
		"delete": {
			{"", "apply --prune --applyset=set -n $NS -f -", "", docs(setOne, setSecret), false},
			{"create cm foreign", "delete --applyset=set -n $NS --dry-run=server", `^(secret "password"|configmap "one") deleted from \S+ namespace \(server dry run\)\n.* \(server dry run\)\n$`, "", false},
			{"get secret password", "delete --applyset=set -n $NS", `(?s)^(?:.*\n)?configmap "one" deleted from \S+ namespace\n`, "", false},
			{"get cm foreign", "delete --applyset=set -n $NS", `^Error from server \(NotFound\): secrets "set" not found\n$`, "", true},
			{"", "delete --applyset=set -n $NS --ignore-not-found", `^$`, "", false},
			{"", "get cm,secret -o name", `(?m)^configmap/foreign$`, "", false},
			{"", "get cm one", `NotFound`, "", true},
			{"", "get secret password", `NotFound`, "", true},
		},
		"wait": {
			{"", "apply --prune --applyset=set -n $NS -f - --wait --timeout=1m", `^configmap/one serverside-applied\n$`, setOne, false},
			{
				"", "apply --prune --applyset=set -n $NS -f - --wait --timeout=2s",
				`(?s)service/balancer serverside-applied\n.*error: timed out waiting: 1 of 2 objects are not ready\n\* Service "\S+/balancer" is InProgress: .*\n$`,
				docs(setOne, setBalancer), true,
			},
		},
		"kept": {
			{"", "apply --prune --applyset=set -n $NS -f -", "", setOne, false},
			{ // the garbage collector does not know the kind of the owner
				"patch cm one --type=merge -p '{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"none.example.com/v1\",\"kind\":\"Tree\",\"name\":\"owner\",\"uid\":\"1\"}]}}'",
				"apply --prune --applyset=set -n $NS -f -", `Warning: ConfigMap "\S+/one" left the set and is kept: it has the owner Tree "owner"\n`, setTwo, false,
			},
			{"", "get cm one -o name", `^configmap/one\n$`, "", false},
		},
		"errors": {
			{"", "apply --prune --applyset=set -n $NS -f -", `STDIN: document 2, line 6: ConfigMap "one" is a duplicate of STDIN: document 1, line 1 \(remove either\)\n$`, docs(setOne, setRed), true},
			{"", "apply --prune --applyset=set -n $NS -f -", `STDIN: document 2, line 8: `, setOne + "---\n# broken\na: [\n", true},
			{"", "get cm -o name", `^(configmap/kube-root-ca.crt\n)?$`, "", false},
		},
		"adopted objects": {
			{"", "apply --server-side -f -", "", docs(setRed, setTwo), false},
			{
				"", "apply --prune --applyset=set -n $NS -f - --adopt",
				`^configmap/one adopted\nconfigmap/(one|two) serverside-applied\nconfigmap/(one|two) serverside-applied\n$`,
				docs(setOne, setTwo), false,
			},
			{"", "get cm one -o jsonpath={.data}", `^\{"color":"blue"\}$`, "", false},
			{"", "apply --prune --applyset=set -n $NS -f - --adopt", `^configmap/(one|two) unchanged\nconfigmap/(one|two) unchanged\n$`, docs(setOne, setTwo), false},
			{"", "apply --prune --applyset=set -n $NS -f - --adopt --dry-run=server", `^error: --adopt is incompatible with --dry-run`, setOne, true},
		},
		"deleted parent": {
			{"", "apply --prune --applyset=set -n $NS -f -", "", setOne, false},
			{"delete secret set", "status --applyset=set -n $NS -f -", `configmap/one +Current +- `, setOne, false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.runSetLines(t, lines)
		})
	}
}

func (o *oracle) runSetLines(t *testing.T, lines []setLine) {
	t.Helper()
	namespace := client.NewKeptNamespace(t, o.client)
	for _, c := range lines {
		if c.before != "" {
			o.kubectl.simple(t, c.before, namespace)
		}
		r := o.anyctl.run(t, &oracleCase{line: c.line, stdin: c.stdin}, namespace, o.kubectl)
		require.Equal(t, c.fails, r.code != 0, "%s: %s", c.line, r.stdout+r.stderr)
		assert.Regexp(t, c.want, r.stdout+r.stderr, "%s", c.line)
		assert.NotContains(t, r.stdout+r.stderr, "c2VjcmV0", "%s shows a password", c.line)
	}
}

// TestApply_FileOfURL compares apply of a file of a server on the loopback.
func TestApply_FileOfURL(t *testing.T) {
	o := newSetOracle(t)
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		switch r.URL.Path {
		case "/moved.yaml":
			http.Redirect(w, r, "/set.yaml", http.StatusFound)
		case "/set.yaml":
			_, _ = io.WriteString(w, docs(setOne, setTwo))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	for _, path := range []string{"/set.yaml", "/moved.yaml"} {
		o.compare(t, &oracleCase{line: "apply --server-side -f " + server.URL + path, effect: []string{"cm/one", "cm/two"}})
	}
	assert.EqualValues(t, 6, requests.Load(), "anyctl requests like kubectl")
	o.compare(t, &oracleCase{
		line: "apply --server-side -f " + server.URL + "/none.yaml", fails: true, differs: &difference{[]string{"stderr"}, "anyctl has a hint"},
	})
}
