package resource_test

import (
	"context"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/unstructured"
)

// A loop that ends without an error has handled all objects.
func TestFinder_FilesAfterContextEnded(t *testing.T) {
	const files = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: two}\n"
	for last, want := range map[string]error{"one": context.Canceled, "two": nil} {
		t.Run(last, func(t *testing.T) {
			finder := &resource.Finder{Local: true, Connection: flags.NewConnection()}
			finder.Files.Paths = []string{"-"}
			finder.Files.In = strings.NewReader(files)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var names []string
			var failed error
			for info, err := range finder.Objects(ctx, nil, false) {
				if err != nil {
					require.NoError(t, failed)
					failed = err
					continue
				}
				if names = append(names, info.Name); info.Name == last {
					cancel()
				}
			}
			require.ErrorIs(t, failed, want)
			assert.Equal(t, last, names[len(names)-1])
		})
	}
}

func TestFinder_VisitAfterContextEnded(t *testing.T) {
	api := scripted.New("/v1 configmaps configmap ConfigMap cm")
	api.Handle("GET /api/v1/namespaces/shop/configmaps", scripted.JSON(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"},
		"items":[{"metadata":{"name":"one"}},{"metadata":{"name":"two"}}]}`))
	server := httptest.NewServer(api)
	defer server.Close()
	connection := &flags.Connection{Kubeconfig: os.DevNull, Server: server.URL, NamespaceFlag: "shop"}
	defer connection.Close()
	finder := &resource.Finder{Connection: connection, AllowTypes: true}
	targets, err := finder.Targets(t.Context(), []string{"cm"})
	require.NoError(t, err)
	for last, want := range map[string]error{"one": context.Canceled, "two": nil} {
		t.Run(last, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var names []string
			found, err := finder.Visit(ctx, targets, func(_ context.Context, _ *dynamic.Resource, obj *unstructured.Object) error {
				if names = append(names, obj.GetName()); obj.GetName() == last {
					cancel()
				}
				return nil
			})
			require.ErrorIs(t, err, want)
			assert.Len(t, names, found)
			assert.Equal(t, last, names[len(names)-1])
		})
	}
}

// An empty name, such as that of an unset variable, selects no object instead of all.
func TestFinder_TargetsWithEmptyName(t *testing.T) {
	finder := &resource.Finder{Connection: flags.NewConnection(), AllowTypes: true}
	for _, args := range [][]string{{"cm", ""}, {"cm", "one", ""}, {"cm,secrets", ""}} {
		targets, err := finder.Targets(t.Context(), args)
		require.EqualError(t, err, "resource name may not be empty")
		assert.Empty(t, targets)
	}
}

func TestFinder_TargetsWithBlankSelector(t *testing.T) {
	server := httptest.NewServer(scripted.New("/v1 configmaps configmap ConfigMap cm"))
	defer server.Close()
	connection := &flags.Connection{Kubeconfig: os.DevNull, Server: server.URL, NamespaceFlag: "shop"}
	defer connection.Close()
	for _, finder := range []*resource.Finder{
		{}, {Selection: flags.Selection{LabelSelector: " "}}, {Selection: flags.Selection{FieldSelector: " "}}, {Where: " "},
	} {
		finder.Connection = connection
		targets, err := finder.Targets(t.Context(), []string{"cm"})
		require.EqualError(t, err, "resource(s) were provided, but no name was specified")
		assert.Empty(t, targets)
	}
}
