package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	clientgo "k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/pager"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

const manyPods = 5000

// BenchmarkListOfManyPods lists 5,000 pods of a real server in pages of 500: with prefetch, without, and with client-go's
// pager; on loopback, and with a latency of 20 ms. It needs the sandbox.
func BenchmarkListOfManyPods(b *testing.B) {
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig(b))
	require.NoError(b, err)
	namespace := createPods(b, podsOf(b, 0))
	for _, latency := range []time.Duration{0, 20 * time.Millisecond} {
		pods := podsOf(b, latency).Namespace(namespace)
		theirs := clientGoOf(b, config, latency)
		for _, way := range []struct {
			name string
			list func(context.Context, func()) error
		}{
			{"anykind", func(ctx context.Context, count func()) error {
				for _, err := range pods.List(ctx, nil) {
					if err != nil {
						return err
					}
					count()
				}
				return nil
			}},
			{"anykind-page-after-page", func(ctx context.Context, count func()) error { return pageAfterPage(ctx, pods, count) }},
			{"client-go-pager", func(ctx context.Context, count func()) error {
				pages := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
					return theirs.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(namespace).List(ctx, opts)
				})
				return pages.EachListItem(ctx, metav1.ListOptions{}, func(runtime.Object) error { count(); return nil })
			}},
		} {
			b.Run(fmt.Sprintf("%s/latency=%s", way.name, latency), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					seen := 0
					require.NoError(b, way.list(b.Context(), func() { seen++ }))
					require.Equal(b, manyPods, seen)
				}
			})
		}
	}
}

// farAway returns a proxy of a server that adds latency.
type farAway struct {
	http.RoundTripper
	latency time.Duration
}

func (f farAway) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(f.latency)
	return f.RoundTripper.RoundTrip(r)
}

func (f farAway) WrappedRoundTripper() http.RoundTripper { return f.RoundTripper }

// clientGoOf returns client-go's client without its rate limit.
func clientGoOf(b *testing.B, config *rest.Config, latency time.Duration) *clientgo.DynamicClient {
	b.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return farAway{next, latency} })
	client, err := rest.HTTPClientFor(config)
	require.NoError(b, err)
	b.Cleanup(func() { utilnet.CloseIdleConnectionsFor(client.Transport) })
	theirs, err := clientgo.NewForConfigAndClient(config, client)
	require.NoError(b, err)
	return theirs
}

func podsOf(b *testing.B, latency time.Duration) *dynamic.Resource {
	b.Helper()
	cfg, err := transport.Load(b.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(b)})
	require.NoError(b, err)
	cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return farAway{next, latency} }
	client, err := dynamic.Connect(b.Context(), cfg)
	require.NoError(b, err)
	b.Cleanup(client.Close)
	pods, err := client.Resource(b.Context(), "pods")
	require.NoError(b, err)
	return pods
}

// pageAfterPage is List without prefetch.
func pageAfterPage(ctx context.Context, pods *dynamic.Resource, count func()) error {
	path, err := pods.Path("")
	if err != nil {
		return err
	}
	for token := ""; ; {
		response, err := pods.Conn().Do(ctx, &transport.Request{Path: path, Query: map[string][]string{"limit": {"500"}, "continue": {token}}})
		if err != nil {
			return err
		}
		items := unstructured.NewListDecoder(response.Body)
		for err == nil {
			if _, err = items.Next(); err == nil {
				count()
			}
		}
		response.Body.Close()
		if err != io.EOF { //nolint:errorlint // a wrapped EOF is a connection that broke, not the end
			return err
		}
		if token = items.Meta().Continue; token == "" {
			return nil
		}
	}
}

// createPods creates pods in a namespace, which is removed when the benchmark ends.
func createPods(b *testing.B, pods *dynamic.Resource) (namespace string) {
	b.Helper()
	namespace = fmt.Sprintf("many-%d", time.Now().UnixNano())
	send := func(ctx context.Context, method, path, body string) error {
		response, err := pods.Conn().Do(ctx, &transport.Request{
			Method: method, Path: path, Body: []byte(body), Header: http.Header{"Content-Type": {"application/json"}},
		})
		if err == nil {
			response.Body.Close()
		}
		return err
	}
	require.NoError(b, send(b.Context(), "POST", "/api/v1/namespaces", `{"metadata":{"name":"`+namespace+`"}}`))
	require.NoError(b, send(b.Context(), "POST", "/api/v1/namespaces/"+namespace+"/serviceaccounts", `{"metadata":{"name":"default"}}`))
	b.Cleanup(func() {
		_, err := pods.Namespace(namespace).DeleteCollection(context.Background(), &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, nil)
		require.NoError(b, err)
		require.NoError(b, send(context.Background(), "DELETE", "/api/v1/namespaces/"+namespace, `{}`))
	})
	env := strings.TrimSuffix(strings.Repeat(`{"name":"SETTING","value":"of a usual length"},`, 10), ",")
	container := `{"name":"web","image":"registry.example.com/web:1","env":[` + env + `],"resources":{"limits":{"memory":"64Mi","cpu":"100m"}}}`
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for n := worker; n < manyPods; n += 8 {
				pod := fmt.Sprintf(`{"metadata":{"name":"web-%04d","labels":{"app":"web"}},"spec":{"nodeName":"n%d","containers":[%s,%s]}}`,
					n, n%50, container, strings.Replace(container, "web", "proxy", 1))
				if err := send(b.Context(), "POST", "/api/v1/namespaces/"+namespace+"/pods", pod); err != nil {
					b.Errorf("creating pod %d: %v", n, err)
					return
				}
			}
		})
	}
	all.Wait()
	return namespace
}
