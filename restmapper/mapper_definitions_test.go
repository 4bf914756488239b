package restmapper_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/transport"
)

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// laggingServer serves the resources of definitions some time after it lists the definitions.
type laggingServer struct {
	*scripted.Server
	mu      sync.Mutex
	defined map[string]time.Time // ats.cnat.example.com → when its resource is served
}

func (s *laggingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	resources := served + "\napiextensions.k8s.io/v1 customresourcedefinitions customresourcedefinition CustomResourceDefinition crd"
	for name, at := range s.defined {
		if plural, group, _ := strings.Cut(name, "."); !time.Now().Before(at) {
			resources += fmt.Sprintf("\n%s/v1 %s - %s", group, plural, strings.ToUpper(plural))
		}
	}
	s.Serve(resources)
	s.mu.Unlock()
	s.Server.ServeHTTP(w, r)
}

func (s *laggingServer) define(name string, served time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.defined[name] = served
	var rows []string
	for name := range s.defined {
		rows = append(rows, fmt.Sprintf(`{"cells":[%q,"2026-01-01T00:00:00Z"]}`, name))
	}
	s.Handle("GET "+definitionsPath, scripted.JSON(fmt.Sprintf(
		`{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[{"name":"Name"},{"name":"Created At"}],"rows":[%s]}`, strings.Join(rows, ","))))
}

// deny rejects lists of definitions.
func (s *laggingServer) deny() {
	s.Handle("GET "+definitionsPath, scripted.Status(http.StatusForbidden, "Forbidden"))
}

func newLaggingServer(t *testing.T) (*laggingServer, *restmapper.Mapper) {
	t.Helper()
	server := &laggingServer{Server: scripted.New(""), defined: map[string]time.Time{}}
	return server, restmapper.New(connect(t, server))
}

func TestMapper_WaitsForDefinitionsNotServedYet(t *testing.T) {
	for _, c := range []struct {
		name   string
		lag    time.Duration
		denied bool
		found  bool
	}{
		{"none", 0, false, true},
		{"usual", 30 * time.Millisecond, false, true},
		{"long", 900 * time.Millisecond, false, true},
		{"never", time.Hour, false, false},
		{"usual, without the right to list definitions", 90 * time.Millisecond, true, true},
		{"long, without the right to list definitions", 200 * time.Millisecond, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, mapper := newLaggingServer(t)
				server.define("ats.cnat.example.com", time.Now().Add(c.lag))
				for _, warm := range []bool{false, true} {
					if warm { // with a second definition
						server.define("bats.cnat.example.com", time.Now().Add(c.lag))
					}
					if c.denied {
						server.deny()
					}
					kind := map[bool]string{false: "ATS", true: "BATS"}[warm]
					mapping, err := mapper.Kind(t.Context(), schema.GroupVersionKind{Group: "cnat.example.com", Version: "v1", Kind: kind})
					if !c.found {
						assert.True(t, meta.IsNoMatchError(err), "%v", err)
						continue
					}
					require.NoError(t, err, kind)
					assert.Equal(t, kind, mapping.GVK.Kind)
				}
			})
		})
	}
}

func TestMapper_UnknownNamesDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, mapper := newLaggingServer(t)
		server.define("ats.cnat.example.com", time.Now())
		server.define("nevers.never.example.com", time.Now().Add(time.Hour))
		began := time.Now()
		for _, name := range []string{"nothing.apps", "deploymnets.cnat.example.com"} {
			requireMissing(t, mapper, name)
		}
		assert.Zero(t, time.Since(began), "the definition that is not served is in another group")
		requireMissing(t, mapper, "deploymnets")
		assert.Equal(t, time.Second, time.Since(began), "it may be a short name of that definition")
		requireMissing(t, mapper, "anything")
		assert.Equal(t, 1100*time.Millisecond, time.Since(began), "which is not new any more")
		assert.Less(t, server.Discoveries(), 20)
		assert.Less(t, len(server.Requests()), 5, "requests for definitions")
	})
}

func TestMapper_WaitEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, mapper := newLaggingServer(t)
		server.define("ats.cnat.example.com", time.Now().Add(time.Hour))
		ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, io.ErrClosedPipe)
		defer cancel()
		_, err := mapper.Resource(ctx, "ats")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, io.ErrClosedPipe)
		assert.False(t, meta.IsNoMatchError(err))
	})
}

// TestMapper_ResolvesEstablishedDefinitions creates definitions and looks up their kinds as soon as each is Established. A lookup waits
// for a second. On a busy machine the server may need more time to serve the kind, which a later lookup finds.
func TestMapper_ResolvesEstablishedDefinitions(t *testing.T) {
	conn, _, mapper := sandbox(t)
	const count = 40
	for i := range count {
		group := fmt.Sprintf("lag%d.example.com", i)
		define(t, conn, group)
		awaitEstablished(t, conn, "gadgets."+group)
		asked := mapper
		if i%2 == 1 { // one that has asked nothing yet
			asked = restmapper.New(discovery.New(conn, nil))
		}
		established := time.Now()
		_, err := asked.Kind(t.Context(), schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Gadget"})
		for meta.IsNoMatchError(err) && time.Since(established) > time.Second && time.Since(established) < time.Minute {
			time.Sleep(50 * time.Millisecond)
			_, err = asked.Kind(t.Context(), schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Gadget"})
		}
		require.NoError(t, err)
		_, err = asked.RESTMapper(t.Context()).RESTMapping(schema.GroupKind{Group: group, Kind: "Gadget"}, "v1")
		require.NoError(t, err)
	}
	var requests atomic.Int32
	counting, err := transport.New(conn.Server(), &http.Client{Transport: counter{conn, &requests}}, nil)
	require.NoError(t, err)
	mapper = restmapper.New(discovery.New(counting, nil))
	began := time.Now()
	for i := range 20 {
		requireMissing(t, mapper, fmt.Sprintf("nothing%d", i))
	}
	assert.LessOrEqual(t, requests.Load(), int32(20*3), "unknown names took %s", time.Since(began))
}

type counter struct {
	http.RoundTripper
	requests *atomic.Int32
}

func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

func awaitEstablished(t *testing.T, conn *transport.Conn, name string) {
	t.Helper()
	for {
		response, err := conn.Do(t.Context(), &transport.Request{Path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + name})
		require.NoError(t, err)
		definition, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		if strings.Contains(string(definition), `"the initial names have been accepted"`) {
			return
		}
	}
}
