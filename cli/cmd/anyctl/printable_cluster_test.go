//go:build unix

package main

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

// hostile controls a terminal: a color, a title, C1's CSI, a bell, backspaces and a carriage return.
const hostile = "世界 é\t\x1b[31mred\x1b]0;title\x07\u009b2Jx\b\b\rfake"

// hostileNamespace has a ConfigMap and an Event with hostile texts.
func hostileNamespace(t *testing.T) string {
	t.Helper()
	cluster.NeedComponents(t, cluster.APIServer)
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
	return namespace
}

// hostileLines are command lines whose output has hostile texts.
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
	{"get --raw /api/v1/namespaces/$NS/configmaps/x", true},
	{"annotate configmap x note- -o jsonpath={.data.key}", false},
}

func TestTerminal_GetsNoControlCharacters(t *testing.T) {
	namespace := hostileNamespace(t)
	for _, c := range hostileLines {
		args := append([]string{"-n", namespace}, strings.Fields(strings.ReplaceAll(c.line, "$NS", namespace))...)
		for _, variable := range []string{"NO_COLOR=", "NO_COLOR=1"} {
			s := startWith(t, variable, args...)
			require.Equal(t, 0, s.exitCode(), "%s: %s", c.line, s)
			shown := strings.NewReplacer("\r\r\n", "\n", "\r\n", "\n").Replace(s.String()) // the terminal adds one
			for _, own := range []string{"\x1b[0m", "\x1b[1m", "\x1b[33m"} {
				if variable == "NO_COLOR=" && strings.Contains(c.line, "events") {
					shown = strings.ReplaceAll(shown, own, "")
				}
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

// A web page chooses the path that the proxy reports.
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
