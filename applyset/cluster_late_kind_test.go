package applyset_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/transport"
)

// withoutGroup removes a group from discovery until the client has listed the definitions, as if another API server served it later.
type withoutGroup struct {
	http.RoundTripper

	group  string
	served atomic.Bool
}

func (w *withoutGroup) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	if strings.HasSuffix(request.URL.Path, "/customresourcedefinitions") && query.Get("includeObject") == "" && query.Get("labelSelector") == "" {
		defer w.served.Store(true)
	}
	response, err := w.RoundTripper.RoundTrip(request)
	if err != nil || request.URL.Path != "/apis" || w.served.Load() {
		return response, err
	}
	defer response.Body.Close()
	var document map[string]any
	if err := json.NewDecoder(response.Body).Decode(&document); err != nil {
		return nil, err
	}
	groups, _ := document["items"].([]any)
	document["items"] = slices.DeleteFunc(groups, func(group any) bool {
		fields, _ := group.(map[string]any)
		metadata, _ := fields["metadata"].(map[string]any)
		return metadata["name"] == w.group
	})
	body, err := json.Marshal(document)
	response.Body = io.NopCloser(bytes.NewReader(body))
	response.ContentLength = int64(len(body))
	response.Header.Del("Content-Length")
	response.Header.Del("ETag")
	return response, err
}

// TestSet_KindServedLate uses a set whose kind is served between the checks of its objects and the lists of its members.
func TestSet_KindServedLate(t *testing.T) {
	const text = gems + `---
apiVersion: NAMESPACE.example.com/v1
kind: Gem
metadata: {name: one}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: after, annotations: {config.kubernetes.io/depends-on: NAMESPACE.example.com/namespaces/NAMESPACE/Gem/one}}
data: {a: "1"}
`
	e := newEnvironment(t)
	group := e.namespace + ".example.com"
	client.DeleteAtEnd(t, client.Resource(t, e.Client, "customresourcedefinitions"), "gems."+group)
	_, err := e.set("late").Apply(t.Context(), e.objects(t, text), nil)
	require.NoError(t, err)
	set := func(t *testing.T) *applyset.Set {
		t.Helper()
		late := client.Connect(t, "admin", func(cfg *transport.Config) {
			cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
				return &withoutGroup{RoundTripper: next, group: group}
			}
		})
		return applyset.New(late, applyset.Parent{Namespace: e.namespace, Name: "late"}, nil)
	}
	t.Run("status", func(t *testing.T) {
		_, err := set(t).Status(t.Context(), e.objects(t, text))
		require.NoError(t, err)
	})
	t.Run("apply", func(t *testing.T) {
		_, err := set(t).Apply(t.Context(), e.objects(t, replace(text, `"1"`, `"2"`)), nil)
		require.NoError(t, err)
	})
	t.Run("adopt", func(t *testing.T) {
		resource := client.Resource(t, e.Client, "gems."+group).Namespace(e.namespace)
		patched, err := resource.Patch(t.Context(), "one", types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`), nil)
		require.NoError(t, err)
		entries := patched.GetManagedFields()
		managers := applyset.Managers(entries[len(entries)-1].Manager)
		_, err = set(t).Adopt(t.Context(), e.objects(t, text), &applyset.AdoptOptions{Managers: managers})
		require.NoError(t, err)
	})
}
