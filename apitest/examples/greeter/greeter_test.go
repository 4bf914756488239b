package greeter

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const objects = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: greetings.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: greetings, singular: greeting, kind: Greeting, listKind: GreetingList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, required: [name], properties: {name: {type: string, minLength: 1}}}
          status: {type: object, properties: {text: {type: string}}}
---
apiVersion: example.com/v1
kind: Greeting
metadata: {name: first, namespace: default}
spec: {name: Ada}
`

// start runs the controller on a server with a Greeting.
func start(t *testing.T, opts apitest.Options) *apitest.Server {
	t.Helper()
	for object, err := range unstructured.NewYAMLDecoder(strings.NewReader(objects)).All() {
		require.NoError(t, err)
		opts.Objects = append(opts.Objects, object)
	}
	server := apitest.NewServer(t, &opts)
	ctx, stop := context.WithCancel(t.Context())
	client := server.Client()
	done := make(chan error, 1)
	go func() { done <- Run(ctx, client) }()
	t.Cleanup(func() {
		stop()
		assert.ErrorIs(t, <-done, context.Canceled)
	})
	return server
}

// text returns the text in the ConfigMap, "" if there is none.
func text(server *apitest.Server) string {
	states := server.StatesOf("configmaps", "default", "first")
	if len(states) == 0 {
		return ""
	}
	text, _, _ := unstructured.Get[string](states[len(states)-1].Object, "data", "text")
	return text
}

func await(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, time.Minute, 5*time.Millisecond)
}

// TestRun_OnEitherServer runs on apitest or, with APITEST_KUBECONFIG, on a real API server.
func TestRun_OnEitherServer(t *testing.T) {
	var opts apitest.Options
	for object, err := range unstructured.NewYAMLDecoder(strings.NewReader(objects)).All() {
		require.NoError(t, err)
		object.SetNamespace("")
		opts.Objects = append(opts.Objects, object)
	}
	target := apitest.NewTarget(t, &opts)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, target.Client()) }()
	configMaps, err := target.Client().Resource(ctx, "configmaps")
	require.NoError(t, err)
	await(t, func() bool {
		configMap, err := configMaps.Namespace(target.Namespace()).Get(ctx, "first", nil)
		if err != nil {
			return false
		}
		text, _, err := unstructured.Get[string](configMap, "data", "text")
		return err == nil && text == "Hello, Ada!"
	})
	stop()
	require.ErrorIs(t, <-done, context.Canceled)
}

func TestRun_WritesOnce(t *testing.T) {
	server := start(t, apitest.Options{})
	await(t, func() bool { return len(server.Requests(apitest.OfResource("greetings.example.com/status"))) > 0 })
	assert.Equal(t, "Hello, Ada!", text(server))
	time.Sleep(50 * time.Millisecond) // the controller's own writes trigger it again
	server.AssertRequests(t, 1, apitest.OfResource("greetings.example.com/status"), apitest.Succeeded)
}

func TestRun_RetriesAfterErrors(t *testing.T) {
	server := start(t, apitest.Options{Faults: []apitest.Fault{{
		Match: apitest.OfResource("configmaps"), Times: 2, Err: apierrors.NewInternalError(assert.AnError),
	}}})
	await(t, func() bool { return text(server) != "" })
	assert.Len(t, server.Requests(apitest.OfResource("configmaps"), func(r apitest.Request) bool { return r.Code == 500 }), 2)
}

func TestRun_AfterCompactionAndRestart(t *testing.T) {
	server := start(t, apitest.Options{})
	await(t, func() bool { return text(server) == "Hello, Ada!" })
	greetings, err := server.Client().Resource(t.Context(), "greetings.example.com")
	require.NoError(t, err)
	_, err = greetings.Patch(t.Context(), "first", types.MergePatchType, []byte(`{"spec":{"name":"Grace"}}`), nil)
	require.NoError(t, err)
	server.Compact()
	require.NoError(t, server.Restart(0))
	await(t, func() bool { return text(server) == "Hello, Grace!" })
}
