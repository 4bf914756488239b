//go:build unix

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

// hostile controls a terminal: a color, a title, C1's CSI, a bell, backspaces and a carriage return.
const hostile = "世界 é\t\x1b[31mred\x1b]0;title\x07\u009b2Jx\b\b\rfake"

// hostileNamespace has a ConfigMap, an Event and a Pod with hostile texts.
func hostileNamespace(t *testing.T) string {
	t.Helper()
	cluster.NeedComponents(t, cluster.APIServer, cluster.ControllerManager)
	c := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, c)
	for resource, object := range map[string]map[string]any{
		"configmaps": {"metadata": map[string]any{"name": "x", "annotations": map[string]any{"note": hostile}}, "data": map[string]any{"key": hostile + "\nnext\r\n", "cell": strings.ReplaceAll(hostile, "\t", " ")}},
		"events": {
			"metadata": map[string]any{"name": "x"}, "message": hostile, "reason": "Hostile\a", "type": "Normal",
			"involvedObject": map[string]any{"kind": "ConfigMap", "name": "x", "namespace": namespace},
		},
	} {
		_, err := client.Resource(t, c, resource).Namespace(namespace).Create(t.Context(), &unstructured.Object{Object: object}, nil)
		require.NoError(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := client.Resource(t, c, "serviceaccounts").Namespace(namespace).Wait(ctx, "default", dynamic.Exists())
	require.NoError(t, err)
	pods := client.Resource(t, c, "pods").Namespace(namespace).WithDefaults(&dynamic.Defaults{FieldManager: "世界"})
	_, err = pods.Create(ctx, &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "x"},
		"spec": map[string]any{
			"schedulerName": "none", // the status stays as it is
			"containers":    []any{map[string]any{"name": "x", "image": "x", "env": []any{map[string]any{"name": "TEXT", "value": hostile}}}},
		},
	}}, nil)
	require.NoError(t, err)
	status, err := json.Marshal(map[string]any{"status": map[string]any{"phase": "Failed", "message": hostile}})
	require.NoError(t, err)
	_, err = pods.Subresource("status").Patch(ctx, "x", types.MergePatchType, status, nil)
	require.NoError(t, err)
	return namespace
}

// hostileLines are command lines with hostile texts in their output.
var hostileLines = []struct {
	line      string
	isKubectl bool // kubectl has the same line
}{
	{"get events", false},
	{"get events,configmaps --one-table", false},
	{"get events,configmaps", false},
	{"events", false},
	{"get configmaps -o custom-columns=A:.data.cell,B:.metadata.name", true},
	{"get configmaps -o jsonpath={.items[*].data.key}", true},
	{"get configmap x -o jsonpath={.data.key}", true},
	{"get configmap x -o jq=.data.key", false},
	{"get configmap x -o go-template={{.data.key}}", true},
	{"get configmap x -o json", true},
	{"get configmap x -o yaml", false}, // kubectl rejects C1 controls
	{"describe configmap x", false},
	{"describe pod x", false},
	{"tree pod x", false},
	{"who pod x", false},
	{"set env pod/x --list", false},
	{"get events -w", false},
	{"get events --color=always", false},
	{"get --raw /api/v1/namespaces/$NS/configmaps/x", true},
	{"annotate configmap x note- -o jsonpath={.data.key}", false},
}

func TestTerminal_GetsNoControlCharacters(t *testing.T) {
	namespace := hostileNamespace(t)
	for _, c := range hostileLines {
		args := append([]string{"-n", namespace}, strings.Fields(strings.ReplaceAll(c.line, "$NS", namespace))...)
		for _, variable := range []string{"NO_COLOR=", "NO_COLOR=1"} {
			s := startWith(t, variable, args...)
			code := 0
			if strings.HasSuffix(c.line, " -w") {
				s.waitFor("世界")
				s.press("\x03")
				code = 1 // as kubectl
			}
			require.Equal(t, code, s.exitCode(), "%s: %s", c.line, s)
			shown := strings.NewReplacer("\r\r\n", "\n", "\r\n", "\n").Replace(s.String()) // the terminal adds one
			if variable == "NO_COLOR=" || strings.Contains(c.line, "--color=always") {
				shown = strings.NewReplacer("\x1b[0m", "", "\x1b[1m", "", "\x1b[31mFailed", "Failed", "\x1b[33m", "").Replace(shown)
			}
			assert.Equal(t, -1, strings.IndexFunc(shown, func(r rune) bool {
				return unicode.IsControl(r) && r != '\n' && r != '\t'
			}), "%s: %q", c.line, shown)
			assert.Contains(t, shown, "世界", c.line)
		}
	}
}

func TestPipe_GetsBytesOfKubectl(t *testing.T) {
	namespace := hostileNamespace(t)
	for _, c := range hostileLines {
		if !c.isKubectl {
			continue
		}
		args := append([]string{"-n", namespace}, strings.Fields(strings.ReplaceAll(c.line, "$NS", namespace))...)
		want := exec.Command(cluster.Kubectl(t), args...)
		want.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(t), "HOME="+t.TempDir())
		expected, err := want.CombinedOutput()
		require.NoError(t, err, "%s: %s", c.line, expected)
		got, err := anyctlCommand(t, args...).CombinedOutput()
		require.NoError(t, err, "%s: %s", c.line, got)
		assert.Equal(t, string(expected), string(got), c.line)
	}
}

// The reported path comes from a web page.
func TestProxy_ReportsOneLine(t *testing.T) {
	s := start(t, "--server", "https://127.0.0.1:1", "proxy", "--port=0")
	s.waitFor("\r\n")
	_, address, found := strings.Cut(strings.TrimSpace(s.String()), "Starting to serve on ")
	require.True(t, found, "%s", s)
	response, err := http.Get("http://" + address + "/x%0Aerror:%20fake%1B%5B2J%C2%9B")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusBadGateway, response.StatusCode)
	s.waitFor("\r\nerror: proxy GET /x error: fake\ufffd[2J\ufffd: ")
}
