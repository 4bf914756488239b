package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/fleet"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/anykind/anykind/unstructured"
)

// podCluster is a cluster in memory with pods in namespace shop.
type podCluster struct {
	*scripted.Server

	name    string
	events  chan string // of the watch after the initial list
	restart func()      // breaks the watches of the server
}

// newPodCluster returns a cluster with pods. The server resumes a watch at any resourceVersion.
func newPodCluster(name string, pods ...string) *podCluster {
	c := &podCluster{Server: scripted.New("/v1 pods pod Pod po"), name: name, events: make(chan string)}
	var mu sync.Mutex
	closed := make(chan struct{})
	c.restart = func() {
		mu.Lock()
		defer mu.Unlock()
		close(closed)
		closed = make(chan struct{})
	}
	c.Handle("WATCH /api/v1/pods", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		over := closed
		mu.Unlock()
		if r.URL.Query().Get("sendInitialEvents") != "" {
			for i, pod := range pods {
				_, _ = fmt.Fprint(w, scripted.Event("ADDED", podJSON(name, pod, i+1)))
			}
			_, _ = fmt.Fprint(w, scripted.InitialEventsEnd("v1", "Pod", "100"))
		}
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case event := <-c.events:
				_, _ = fmt.Fprint(w, event)
			case <-over:
				panic(http.ErrAbortHandler)
			case <-r.Context().Done():
				return
			}
		}
	})
	return c
}

func podJSON(cluster, name string, version int) string {
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"shop","name":%q,"uid":"%s-%s","resourceVersion":"%d","labels":{"app":"web"}}}`,
		name, cluster, name, version)
}

// config returns the configuration of the cluster with a token.
func (c *podCluster) config(token string) *transport.Config {
	return &transport.Config{Server: "http://" + c.name, Token: kubeconfig.NewSecret(token)}
}

// tokenTransport sends a token over connections in memory.
type tokenTransport struct {
	http.RoundTripper

	token string
}

func (t *tokenTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.RoundTripper == nil {
		return nil, errors.New("connection refused")
	}
	r = r.Clone(r.Context())
	r.Header.Set("Accept", r.Header.Get("Accept")+";token="+t.token)
	return t.RoundTripper.RoundTrip(r)
}

// newFleet returns a fleet of clusters in memory, whose Run lasts as long as the test.
func newFleet(t *testing.T, source fleet.Source, clusters ...*podCluster) *fleet.Fleet {
	t.Helper()
	servers := map[string]http.RoundTripper{}
	for _, c := range clusters {
		servers["http://"+c.name] = scripted.RoundTripper(t, c)
	}
	f := fleet.New(&fleet.Options{
		Sources: []fleet.Source{source},
		Open: func(_ string, cfg *transport.Config) (*transport.Conn, error) {
			return transport.New(cfg.Server, &http.Client{Transport: &tokenTransport{servers[cfg.Server], cfg.Token.Reveal()}}, nil)
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	run(t, f.Run)
	return f
}

// run runs f until the test ends.
func run(t *testing.T, f func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.ErrorIs(t, <-done, context.Canceled)
	})
}

// static returns a source of clusters that do not change.
func static(clusters ...*podCluster) fleet.Source {
	return func(_ context.Context, members *fleet.Clusters) error {
		for _, c := range clusters {
			members.Set(c.name, c.config("first"))
		}
		return nil
	}
}

// dynamicSource returns a source whose clusters a test changes after the call of the function.
func dynamicSource() (source fleet.Source, members func() *fleet.Clusters) {
	running := make(chan *fleet.Clusters, 1)
	return func(ctx context.Context, members *fleet.Clusters) error {
			members.Synced()
			running <- members
			<-ctx.Done()
			return ctx.Err()
		}, func() *fleet.Clusters {
			m := <-running
			running <- m
			return m
		}
}

// newPods returns a running cache of pods.
func newPods(t *testing.T, f *fleet.Fleet) *fleet.Cache[unstructured.Object] {
	t.Helper()
	pods := fleet.NewCache(f, "pods", &fleet.CacheOptions[unstructured.Object]{Options: cache.Options[unstructured.Object]{
		Indexes: map[string]func(*unstructured.Object) []string{"app": cache.IndexByLabel[unstructured.Object]("app")},
	}})
	run(t, pods.Run)
	return pods
}

// changeText returns a change as "TYPE cluster/name".
func changeText(change fleet.Change[unstructured.Object]) string {
	if change.Object == nil {
		return string(change.Type) + " " + change.Cluster
	}
	return string(change.Type) + " " + change.Cluster + "/" + change.Object.GetName()
}

// consumer collects the changes of a cache.
type consumer struct {
	mu      sync.Mutex
	changes []string
}

func consume(t *testing.T, pods *fleet.Cache[unstructured.Object]) *consumer {
	t.Helper()
	c := &consumer{}
	run(t, func(ctx context.Context) error {
		for change := range pods.Changes(ctx) {
			c.mu.Lock()
			c.changes = append(c.changes, changeText(change))
			c.mu.Unlock()
		}
		return context.Canceled
	})
	return c
}

// drain returns the changes since the last call.
func (c *consumer) drain() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.changes
	c.changes = nil
	return taken
}
