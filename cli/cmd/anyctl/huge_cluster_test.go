//go:build unix

package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

// hugeLines are command lines about the ConfigMaps long, a line of 300 kB, and many, 5,000 keys, and the custom object deep, a tree of
// 1,000 levels.
var hugeLines = []struct {
	line      string
	isKubectl bool // kubectl has the same output
	limit     int  // maximum length of the output; 0 is none
}{
	{"get configmaps long many", true, 0},
	{"get configmap long -o yaml", true, 0},
	{"get configmap long -o json", true, 0},
	{"get configmap long -o jsonpath={.data.line}", true, 0},
	{"get configmap many -o yaml", true, 0},
	{"get configmap many -o jsonpath={.data.key-4999}", true, 0},
	{"get configmaps -o custom-columns=NAME:.metadata.name,DATA:.data.line", true, 0},
	{"get configmaps -o custom-columns=DATA:.data", true, 0},
	{"get huges deep", true, 0},
	{"get huges deep -o json", true, 0},
	{"get huges deep -o yaml", true, 0},
	{"get huges deep -o jsonpath={.spec}", true, 0},
	{"get huges deep -o go-template={{.spec}}", true, 0},
	{"get huges -o custom-columns=SPEC:.spec", true, 0},
	{"get huges --where .spec.a.a.a", false, 1000},
	{"tree huges deep", false, 1000},
	{"describe configmap long", false, 10_000},
	{"describe configmap many", false, 500_000},
	{"describe huges deep", false, 100_000},
	{"label configmap many a=b --dry-run=client -o name", true, 0},
	{"annotate huges deep a=b --dry-run=server", true, 0},
}

// agePattern is the column AGE at the end of a line.
var agePattern = regexp.MustCompile(` +(\d+m)?\d+[sm]\n`)

// hugeNamespace has the objects of hugeLines.
func hugeNamespace(t *testing.T) string {
	t.Helper()
	cluster.NeedComponents(t, cluster.APIServer)
	c := client.Connect(t, "admin")
	definitions := client.Resource(t, c, "customresourcedefinitions")
	_, err := definitions.Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "huges.anyctl.example.com"},
		"spec": map[string]any{
			"group": "anyctl.example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "huges", "kind": "Huge"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		},
	}}, nil)
	require.NoError(t, err)
	client.DeleteAtEnd(t, definitions, "huges.anyctl.example.com")
	_, err = definitions.Wait(t.Context(), "huges.anyctl.example.com", dynamic.Condition("Established"))
	require.NoError(t, err)

	namespace := client.NewNamespace(t, c)
	configMaps := client.Resource(t, c, "configmaps").Namespace(namespace)
	many := map[string]any{}
	for i := range 5_000 {
		many["key-"+strconv.Itoa(i)] = "value"
	}
	for name, data := range map[string]map[string]any{"long": {"line": strings.Repeat("long ", 60_000)}, "many": many} {
		_, err = configMaps.Create(t.Context(), &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": name}, "data": data}}, nil)
		require.NoError(t, err)
	}
	deep := map[string]any{"end": true}
	for range 1000 {
		deep = map[string]any{"a": deep}
	}
	_, err = client.Resource(t, c, "huges").Namespace(namespace).Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "deep"}, "spec": deep,
	}}, nil)
	require.NoError(t, err)
	return namespace
}

func TestTerminal_HugeAndDeepObjects(t *testing.T) {
	namespace := hugeNamespace(t)
	for _, c := range hugeLines {
		t.Run(c.line, func(t *testing.T) {
			args := append([]string{"-n", namespace}, strings.Fields(c.line)...)
			s := startWith(t, "NO_COLOR=1", args...)
			require.Equal(t, 0, s.exitCode(), "%.1000s", s)
			shown := s.String()
			if c.isKubectl {
				kubectl := exec.Command(cluster.Kubectl(t), args...)
				kubectl.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(t), "HOME="+t.TempDir())
				expected, err := kubectl.CombinedOutput()
				require.NoError(t, err, "%.1000s", expected)
				got, err := anyctlCommand(t, args...).CombinedOutput()
				require.NoError(t, err, "%.1000s", got)
				want := agePattern.ReplaceAllString(string(expected), " AGE\n")
				have := agePattern.ReplaceAllString(string(got), " AGE\n")
				assert.True(t, want == have, "kubectl: %.1000s\nanyctl: %.1000s", want, have)
			}
			if c.limit > 0 {
				assert.LessOrEqual(t, len(shown), c.limit, "%.1000s", shown)
			}
		})
	}
}
