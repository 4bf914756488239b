package applyset_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured/manifest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// environment is a namespace of the sandbox and a client whose requests are recorded.
type environment struct {
	*dynamic.Client

	namespace string
	requests  *requestLog
}

func newEnvironment(t *testing.T) *environment {
	t.Helper()
	log := &requestLog{}
	c := client.Connect(t, "admin", func(cfg *transport.Config) { cfg.OnAttempt = log.record })
	return &environment{Client: c, namespace: client.NewNamespace(t, c), requests: log}
}

// set returns a set of the environment with the parent Secret NAME.
func (e *environment) set(name string) *applyset.Set {
	return applyset.New(e.Client, applyset.Parent{Namespace: e.namespace, Name: name}, nil)
}

// objects decodes YAML. NAMESPACE stands for the environment's namespace.
func (e *environment) objects(t *testing.T, text string) []*manifest.Object {
	t.Helper()
	objects, err := manifest.Decode("test", strings.NewReader(strings.ReplaceAll(text, "NAMESPACE", e.namespace)))
	require.NoError(t, err)
	return objects
}

// outcomes returns the events as "ACTION KIND NAME".
func outcomes(events []applyset.Event) []string {
	lines := make([]string, len(events))
	for i, event := range events {
		lines[i] = fmt.Sprintf("%s %s %s", event.Action, event.Object.Kind.Kind, event.Object.Name)
	}
	return lines
}

// requestLog records the requests of a client.
type requestLog struct {
	mu  sync.Mutex
	all []string
}

func (l *requestLog) record(_ context.Context, attempt transport.Attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, attempt.Method+" "+attempt.Path)
}

// reset returns and forgets the recorded requests.
func (l *requestLog) reset() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return all
}

// writes returns the requests that are no reads.
func writes(requests []string) (all []string) {
	for _, request := range requests {
		if !strings.HasPrefix(request, http.MethodGet) {
			all = append(all, request)
		}
	}
	return all
}

// replace replaces pairs of texts.
func replace(text string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(text) }

var namespaceKind = schema.GroupKind{Kind: "Namespace"}
