package bench_test

import (
	"context"
	"testing"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	cgdynamic "k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// wireCase is one call, as it is written with either client.
type wireCase struct {
	resource string // its plural; a namespaced one is used in the namespace shop
	ours     func(context.Context, *dynamic.Resource) error
	theirs   func(context.Context, theirHandle) error
}

// theirHandle is client-go's way to a resource: its dynamic client's, its metadata client's, and by path.
type theirHandle struct {
	cgdynamic.ResourceInterface
	metadata metadata.ResourceInterface
	rest     rest.Interface
}

// TestEveryCallSendsWhatClientGoSends makes each call with both clients and compares the requests: method, path, query,
// Accept, Content-Type and what the body means. What differs stands in meantDifferences with its reason.
func TestEveryCallSendsWhatClientGoSends(t *testing.T) {
	server := newWireServer(t)
	ours, theirs := wireClients(t, server)
	for name, call := range wireCases() {
		t.Run(name, func(t *testing.T) {
			gvr, namespaced := gvrOf(t, call.resource)
			resource, err := ours.Resource(t.Context(), call.resource)
			require.NoError(t, err)
			other := theirHandle{theirs.dynamic.Resource(gvr), theirs.metadata.Resource(gvr), theirs.rest}
			if namespaced {
				resource = resource.In("shop")
				other.ResourceInterface, other.metadata = theirs.dynamic.Resource(gvr).Namespace("shop"), theirs.metadata.Resource(gvr).Namespace("shop")
			}
			require.NoError(t, call.ours(t.Context(), resource))
			our := server.take(t)
			require.NoError(t, call.theirs(t.Context(), other))
			compareRequests(t, name, our, server.take(t))
		})
	}
}

// TestEveryMeantDifferenceIsOfACall finds what is left of calls that are gone.
func TestEveryMeantDifferenceIsOfACall(t *testing.T) {
	calls := wireCases()
	for name := range meantDifferences {
		assert.Contains(t, calls, name)
	}
}

// compareRequests checks that all differences are meant, and that those that are meant are there.
func compareRequests(t *testing.T, name string, ours, theirs []wireRequest) {
	t.Helper()
	require.Len(t, theirs, 1)
	require.Len(t, ours, 1)
	var want []string
	for _, meant := range meantDifferences[name] {
		require.NotEmpty(t, meant.reason)
		want = append(want, meant.difference)
	}
	assert.ElementsMatch(t, want, differences(ours[0], theirs[0]))
}

// wireObject is an object with no more than its kind and name.
func wireObject(apiVersion, kind, name string) *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}}
}

// wirePod has values of every sort.
func wirePod() *unstructured.Object {
	pod := wireObject("v1", "Pod", "web")
	pod.Object["spec"] = map[string]any{
		"priority": int64(9007199254740993), "ratio": 1.5, "hostNetwork": true, "nothing": nil,
		"containers": []any{map[string]any{"name": "a<b>&c\u2028\"", "args": []any{}}},
	}
	return pod
}
