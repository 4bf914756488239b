package apitest_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/unstructured"
)

// recordingT collects what a server logs.
type recordingT struct {
	testing.TB
	mu    sync.Mutex
	texts []string
}

func (r *recordingT) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts = append(r.texts, fmt.Sprintf(format, args...))
}

// A ResourceClaim has no rules of its own, and an unknown field is a warning of the real server.
const claimsPath = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"

func claim(name string) string {
	return fmt.Sprintf(`{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":%q},"spec":{"unknown":1,"devices":{"requests":[{"name":"a"}]}}}`, name)
}

func TestNewServer_LogsWarningsOnce(t *testing.T) {
	recorder := &recordingT{TB: t}
	server := apitest.NewServer(recorder, nil)
	for i := range 2 {
		response := do(t, server, "POST", claimsPath, claim(fmt.Sprint("a", i)))
		assert.Equal(t, http.StatusCreated, response.code, response.text)
	}
	recorder.mu.Lock()
	defer recorder.mu.Unlock()
	assert.Len(t, recorder.texts, 2)
	assert.Contains(t, strings.Join(recorder.texts, "\n"), `POST `+claimsPath+`: warning: unknown field "spec.unknown"`)
	for _, request := range server.Requests() {
		assert.Len(t, request.Warnings, 2)
	}
}

func TestOptions_OnNotValidated(t *testing.T) {
	var texts []string
	recorder := &recordingT{TB: t}
	seed := unstructured.Object{}
	assert.NoError(t, seed.UnmarshalJSON([]byte(claim("seed"))))
	server := apitest.NewServer(recorder, &apitest.Options{
		Objects: []*unstructured.Object{&seed},
		OnNotValidated: func(request apitest.Request, text string) {
			texts = append(texts, strings.TrimSpace(request.Method+" "+request.Verb+" "+request.Resource+" "+request.Name))
			assert.Contains(t, text, "apitest: ")
		},
	})
	do(t, server, "POST", claimsPath, claim("a"))
	assert.Equal(t, []string{"create resourceclaims seed", "POST create resourceclaims"}, texts)
	for _, text := range recorder.texts {
		assert.NotContains(t, text, "apitest: ")
	}
	assert.Len(t, server.Requests()[0].Warnings, 2)
}

func TestServer_WarnsOfDeprecatedKinds(t *testing.T) {
	var warnings []string
	server := apitest.NewServer(t, &apitest.Options{OnNotValidated: func(apitest.Request, string) {}})
	endpoints, err := server.Client().Resource(t.Context(), "endpoints")
	require.NoError(t, err)
	_, err = endpoints.Namespace("default").ListPage(t.Context(), nil)
	require.NoError(t, err)
	for _, request := range server.Requests(apitest.OfResource("endpoints", "list")) {
		warnings = append(warnings, request.Warnings...)
	}
	assert.Equal(t, []string{"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"}, warnings)
}
