package wire_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	cgdynamic "k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// wireCase is a call with either client.
type wireCase struct {
	resource string // its plural; a namespaced one is used in the namespace shop
	ours     func(context.Context, *dynamic.Resource) error
	theirs   func(context.Context, theirHandle) error
}

// theirHandle has client-go's clients of a resource: dynamic, metadata, and by path.
type theirHandle struct {
	cgdynamic.ResourceInterface
	metadata metadata.ResourceInterface
	rest     rest.Interface
}

// TestWire_RequestsAsClientGo makes each call with both clients and compares the requests: method, path, query, Accept,
// Content-Type and the meaning of the body. meantDifferences has the intended differences.
func TestWire_RequestsAsClientGo(t *testing.T) { compareWithClientGo(t, false) }

// TestWire_ProtobufChangesAcceptAlone repeats it with protobuf.
func TestWire_ProtobufChangesAcceptAlone(t *testing.T) { compareWithClientGo(t, true) }

func compareWithClientGo(t *testing.T, protobuf bool) {
	t.Helper()
	server := newWireServer(t)
	ours, theirs := wireClients(t, server, protobuf)
	requested := map[string]int{} // as protobuf, by method
	for name, call := range wireCases() {
		t.Run(name, func(t *testing.T) {
			gvr, namespaced := gvrOf(t, call.resource)
			resource, err := ours.Resource(t.Context(), call.resource)
			require.NoError(t, err)
			other := theirHandle{theirs.dynamic.Resource(gvr), theirs.metadata.Resource(gvr), theirs.rest}
			if namespaced {
				resource = resource.Namespace("shop")
				other.ResourceInterface = theirs.dynamic.Resource(gvr).Namespace("shop")
				other.metadata = theirs.metadata.Resource(gvr).Namespace("shop")
			}
			require.NoError(t, call.ours(t.Context(), resource))
			our := server.recorded(t)
			if withoutProtobuf(our) {
				requested[our[0].Method]++
			}
			require.NoError(t, call.theirs(t.Context(), other))
			compareRequests(t, name, our, server.recorded(t))
		})
	}
	assert.Equal(t, protobuf, requested[http.MethodGet] > 0)
	delete(requested, http.MethodGet)
	assert.Empty(t, requested, "writes receive JSON")
}

// withoutProtobuf removes protobuf from the first request's Accept if JSON with the same parameters follows, and reports that.
func withoutProtobuf(requests []wireRequest) bool {
	if len(requests) == 0 {
		return false
	}
	first, rest, _ := strings.Cut(requests[0].Accept, ",")
	parameters, isProtobuf := strings.CutPrefix(first, runtime.ContentTypeProtobuf)
	asJSON, _, _ := strings.Cut(rest, ",")
	if isProtobuf = isProtobuf && asJSON == runtime.ContentTypeJSON+parameters; isProtobuf {
		requests[0].Accept = rest
	}
	return isProtobuf
}

// TestWire_DifferencesHaveCases finds intended differences of cases that do not exist.
func TestWire_DifferencesHaveCases(t *testing.T) {
	calls := wireCases()
	for name := range meantDifferences {
		assert.Contains(t, calls, name)
	}
}

// compareRequests checks that all differences are intended, and that all intended ones exist.
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

// wireObject returns an object with a kind and a name only.
func wireObject(apiVersion, kind, name string) *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}}
}

// wirePod returns a pod with values of every type.
func wirePod() *unstructured.Object {
	pod := wireObject("v1", "Pod", "web")
	pod.Object["spec"] = map[string]any{
		"priority": int64(9007199254740993), "ratio": 1.5, "hostNetwork": true, "nothing": nil,
		"containers": []any{map[string]any{"name": "a<b>&c\u2028\"", "args": []any{}}},
	}
	return pod
}
