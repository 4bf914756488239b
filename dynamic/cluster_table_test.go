package dynamic_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

// printed formats a table as kubectl get -o wide does: upper-case headers, columns as wide as their widest cell and
// three spaces between them. Ages are left out: they change.
func printed(page *dynamic.Page[dynamic.TableRow]) []string {
	var lines [][]string
	var header []string
	for _, column := range page.Items[0].Columns {
		header = append(header, strings.ToUpper(column.Name))
	}
	lines = append(lines, header)
	for _, row := range page.Items {
		var cells []string
		for _, cell := range row.Cells {
			text := ""
			if cell != nil {
				text = fmt.Sprint(cell)
			}
			cells = append(cells, text)
		}
		lines = append(lines, cells)
	}
	return withoutAges(lines)
}

func withoutAges(lines [][]string) []string {
	var texts []string
	age := slices.Index(lines[0], "AGE")
	for _, cells := range lines {
		if age >= 0 {
			cells = slices.Delete(slices.Clone(cells), age, age+1)
		}
		texts = append(texts, strings.Join(cells, "|"))
	}
	return texts
}

// kubectlGets returns the output of kubectl get -o wide, cut into cells where the header's words begin.
func kubectlGets(t *testing.T, args ...string) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), cluster.Kubectl(t), append([]string{"--kubeconfig", cluster.Kubeconfig(t), "get", "-o", "wide"}, args...)...)
	output, err := command.Output()
	require.NoError(t, err, "%s", command)
	rows := strings.Split(strings.TrimRight(string(output), "\n"), "\n")
	var begins []int
	for i := range rows[0] {
		if i == 0 || rows[0][i] != ' ' && strings.HasSuffix(rows[0][:i], "   ") {
			begins = append(begins, i)
		}
	}
	var lines [][]string
	for _, row := range rows {
		row += strings.Repeat(" ", max(0, len(rows[0])-len(row)))
		var cells []string
		for i, begin := range begins {
			end := len(row)
			if i+1 < len(begins) {
				end = begins[i+1]
			}
			cells = append(cells, strings.TrimSpace(row[begin:end]))
		}
		lines = append(lines, cells)
	}
	return withoutAges(lines)
}

func TestTables_EqualKubectl(t *testing.T) {
	client, namespace := newNamespace(t)
	printing(t, client, namespace)
	_, err := resource(t, client, "deploy").Namespace(namespace).Create(t.Context(), deployment("web"), nil)
	require.NoError(t, err)
	_, err = resource(t, client, "cm").Namespace(namespace).Create(t.Context(), configMap("settings", map[string]any{"a": "1", "b": "2"}), nil)
	require.NoError(t, err)
	_, err = resource(t, client, "svc").Namespace(namespace).Create(t.Context(), named("web", map[string]any{
		"ports": []any{map[string]any{"port": int64(80), "name": "http"}, map[string]any{"port": int64(443), "name": "tls"}},
	}), nil)
	require.NoError(t, err)
	_, err = resource(t, client, "sa").Namespace(namespace).Create(t.Context(), named("robot", nil), nil)
	require.NoError(t, err)
	_, err = resource(t, client, "pods").Namespace(namespace).Create(t.Context(), named("web", map[string]any{
		"serviceAccountName": "robot", "nodeName": "nowhere", "terminationGracePeriodSeconds": int64(0),
		"containers": []any{map[string]any{"name": "web", "image": "web:1"}},
	}), nil)
	require.NoError(t, err)

	for _, name := range []string{"deploy", "cm", "svc", "pods", "gadgets." + namespace + ".example.com"} {
		want := kubectlGets(t, "-n", namespace, name)
		table, err := resource(t, client, name).Namespace(namespace).Tables(metav1.IncludeNone).ListPage(t.Context(), nil)
		require.NoError(t, err)
		assert.Equal(t, want, printed(table), name)
	}
	for _, name := range []string{"crd", "apiservices", "flowschemas", "namespaces", "clusterroles"} {
		tables := resource(t, client, name).Tables(metav1.IncludeNone)
		for deadline := time.Now().Add(time.Minute); ; { // other tests' namespaces and definitions come and go
			table, err := tables.ListPage(t.Context(), nil)
			require.NoError(t, err)
			if want, got := kubectlGets(t, name), printed(table); slices.Equal(want, got) || time.Now().After(deadline) {
				assert.Equal(t, want, got, name)
				break
			}
		}
	}
}

// printing registers the kind Gadget with columns of every type, in a group of the namespace's name, and creates two.
func printing(t *testing.T, client *dynamic.Client, namespace string) *dynamic.Resource {
	t.Helper()
	group := namespace + ".example.com"
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	column := func(name, kind, path string, priority int64) any {
		return map[string]any{"name": name, "type": kind, "jsonPath": path, "priority": priority}
	}
	crds := resource(t, client, "crd")
	_, err := crds.Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "gadgets." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{"spec": open},
				}},
				"additionalPrinterColumns": []any{
					column("Replicas", "integer", ".spec.replicas", 0), column("Load", "number", ".spec.load", 0),
					column("Paused", "boolean", ".spec.paused", 0), column("Color", "string", ".spec.color", 1),
					column("Age", "date", ".metadata.creationTimestamp", 0),
				},
			}},
		},
	}}, nil)
	require.NoError(t, err)
	removed(t, crds, "gadgets."+group)
	_, err = crds.Wait(t.Context(), "gadgets."+group, dynamic.Condition("Established"))
	require.NoError(t, err)
	gadgets := resource(t, client, "gadgets."+group).Namespace(namespace)
	for name, spec := range map[string]map[string]any{
		"full": {"replicas": int64(3), "load": 0.5, "paused": true, "color": "dark red"}, "empty": {},
	} {
		_, err := gadgets.Create(t.Context(), named(name, spec), nil)
		require.NoError(t, err)
	}
	return gadgets
}

func TestTables_CustomResource(t *testing.T) {
	client, namespace := newNamespace(t)
	gadgets := printing(t, client, namespace)
	ctx := t.Context()

	one, err := gadgets.Tables(metav1.IncludeObject).Get(ctx, "full", nil)
	require.NoError(t, err)
	assert.Equal(t, []any{"full", int64(3), 0.5, true, "dark red"}, one.Cells[:5])
	assert.Equal(t, "Gadget", one.Object.GetKind())
	replicas, _, err := unstructured.Get[int64](one.Object, "spec", "replicas")
	require.NoError(t, err)
	assert.Equal(t, int64(3), replicas)

	page, err := gadgets.Tables("").ListPage(ctx, &metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
	require.NotEmpty(t, page.Continue)
	hasOnlyMetadata(t, gadgets, page.Items[0].Object)
	rest, err := gadgets.Tables("").ListPage(ctx, &metav1.ListOptions{Continue: page.Continue})
	require.NoError(t, err)
	require.Len(t, rest.Items, 1)
	assert.Equal(t, "full", rest.Items[0].Cells[0])
	assert.Empty(t, rest.Continue)

	var seen []string
	for event, err := range gadgets.Tables(metav1.IncludeNone).Watch(ctx, &metav1.ListOptions{
		FieldSelector: "metadata.name=full", SendInitialEvents: new(true), AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}) {
		require.NoError(t, err)
		row := event.Object
		assert.Len(t, row.Columns, 6)
		assert.NotEmpty(t, row.ResourceVersion)
		if event.Type == watch.Bookmark {
			if row.Object.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
				continue // the server may send bookmarks at any time
			}
		}
		seen = append(seen, fmt.Sprint(event.Type, " ", row.Cells[1]))
		switch len(seen) {
		case 2: // the bookmark after the initial events
			_, err := gadgets.Patch(ctx, "full", types.MergePatchType, []byte(`{"spec":{"replicas":4}}`), nil)
			require.NoError(t, err)
		case 3:
			_, err := gadgets.Delete(ctx, "full", nil)
			require.NoError(t, err)
		}
		if len(seen) == 4 {
			break
		}
	}
	assert.Equal(t, []string{"ADDED 3", "BOOKMARK <nil>", "MODIFIED 4", "DELETED 4"}, seen)
}
