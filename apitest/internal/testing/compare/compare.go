// Package compare plays the same requests on the sandbox's API server and on apitest, and compares the responses as text.
package compare

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/internal/testing/realserver"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// Server is either server, with a namespace of the test.
type Server struct {
	*dynamic.Client
	Requests  *realserver.Server // sends single requests
	Namespace string

	warnings *warnings
}

// warnings collects the warnings since the last call of Outcome.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// Sandbox returns the sandbox's API server, and skips the test without a sandbox.
func Sandbox(t testing.TB) *Server {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t)})
	require.NoError(t, err)
	return connect(t, cfg)
}

// Apitest starts an apitest server without warnings about what is not validated.
func Apitest(t testing.TB, opts *apitest.Options) *Server {
	t.Helper()
	own := apitest.Options{}
	if opts != nil {
		own = *opts
	}
	own.OnNotValidated = func(apitest.Request, string) {}
	return connect(t, apitest.NewServer(t, &own).Config())
}

func connect(t testing.TB, cfg *transport.Config) *Server {
	t.Helper()
	received := &warnings{}
	cfg.RepeatWarnings = true
	cfg.OnWarning = func(_ context.Context, text string) {
		received.mu.Lock()
		defer received.mu.Unlock()
		received.texts = append(received.texts, text)
	}
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	c := dynamic.New(conn, nil)
	t.Cleanup(c.Close)
	return &Server{Client: c, Requests: realserver.New(conn), Namespace: client.NewNamespace(t, c), warnings: received}
}

// Responses calls play with both servers at the same time. It fails unless the responses are equal, and at least atLeast.
func Responses(t *testing.T, opts *apitest.Options, atLeast int, play func(t *testing.T, s *Server) map[string]string) {
	t.Helper()
	cluster.Kubeconfig(t) // skips the test without a sandbox
	var want, got map[string]string
	t.Run("servers", func(t *testing.T) {
		t.Run("sandbox", func(t *testing.T) {
			t.Parallel()
			want = play(t, Sandbox(t))
		})
		t.Run("apitest", func(t *testing.T) {
			t.Parallel()
			got = play(t, Apitest(t, opts))
		})
	})
	assert.Equal(t, want, got)
	assert.GreaterOrEqual(t, len(want), atLeast)
}

// As returns the server with an impersonated user.
func (s *Server) As(t testing.TB, user transport.Impersonation) *Server {
	t.Helper()
	as := *s
	var err error
	as.Client, err = s.Impersonate(user)
	require.NoError(t, err)
	return &as
}

// Object decodes an object from YAML. NAMESPACE stands for the test's namespace.
func (s *Server) Object(t testing.TB, yaml string) *unstructured.Object {
	t.Helper()
	for obj, err := range unstructured.NewYAMLDecoder(strings.NewReader(strings.ReplaceAll(yaml, "NAMESPACE", s.Namespace))).All() {
		require.NoError(t, err, yaml)
		return obj
	}
	require.Fail(t, "no object", yaml)
	return nil
}

// Handle returns the resource of an object, in the test's namespace.
func (s *Server) Handle(t testing.TB, obj *unstructured.Object) *dynamic.Resource {
	t.Helper()
	resource, err := s.ForObject(t.Context(), obj)
	require.NoError(t, err)
	if resource.APIResource().Namespaced && obj.GetNamespace() == "" {
		return resource.Namespace(s.Namespace)
	}
	return resource
}

// Create creates an object from YAML; see Object. A cluster-scoped object is deleted at the end of the test.
func (s *Server) Create(t testing.TB, yaml string) (*unstructured.Object, error) {
	t.Helper()
	obj := s.Object(t, yaml)
	resource := s.Handle(t, obj)
	created, err := resource.Create(t.Context(), obj, nil)
	if err == nil && !resource.APIResource().Namespaced {
		client.DeleteAtEnd(t, resource, created.GetName())
	}
	return created, err
}

// Need creates objects and fails the test on an error.
func (s *Server) Need(t testing.TB, yamls ...string) {
	t.Helper()
	for _, yaml := range yamls {
		_, err := s.Create(t, yaml)
		require.NoError(t, err, yaml)
	}
	s.takeWarnings()
}

// Eventually waits for the server's caches, such as the caches of roles, classes and webhook configurations.
func (s *Server) Eventually(t testing.TB, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, time.Minute, 50*time.Millisecond)
	s.takeWarnings()
}

var (
	uidPattern  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	hostPattern = regexp.MustCompile(`127\.0\.0\.1:\d+`)
)

// Outcome returns the outcome of a request as text: the code, reason and message of a Status, or shown. Warnings are appended.
func (s *Server) Outcome(shown any, err error) string {
	text := fmt.Sprint(shown)
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		text = fmt.Sprintf("%d %s: %s", status.Status().Code, status.Status().Reason, status.Status().Message)
	case err != nil:
		text = err.Error()
	}
	text = strings.Join(slices.Insert(s.takeWarnings(), 0, text), "; ")
	text = strings.ReplaceAll(text, s.Namespace, "NAMESPACE")
	return hostPattern.ReplaceAllString(uidPattern.ReplaceAllString(text, "UID"), "HOST")
}

func (s *Server) takeWarnings() []string {
	s.warnings.mu.Lock()
	defer s.warnings.mu.Unlock()
	texts := s.warnings.texts
	s.warnings.texts = nil
	return texts
}
