package dynamic_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// bodies is an HTTP transport without a network: it responds with a list, an object or a watch.
type bodies struct{ list, object, watch string }

func (b bodies) RoundTrip(r *http.Request) (*http.Response, error) {
	body := b.object
	switch {
	case r.URL.Query().Has("watch"):
		body = b.watch
	case !strings.HasSuffix(r.URL.Path, "/pod-0"):
		body = b.list
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: readCloser{strings.NewReader(body)}, Request: r}, nil
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

const benchPods = 500

func benchHandle(b *testing.B) *dynamic.Resource {
	b.Helper()
	pods := make([]string, benchPods)
	var events strings.Builder
	for i := range pods {
		pods[i] = fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"home","name":"pod-%d","uid":"u%d","resourceVersion":"%d","labels":{"app":"web","tier":"front"}},`+
			`"spec":{"nodeName":"n","priority":7,"containers":[{"name":"web","image":"web:1","env":[{"name":"A","value":"b"}]}]},"status":{"phase":"Running","podIP":"10.0.0.1"}}`, i, i, i+1)
		events.WriteString(scripted.Event("ADDED", pods[i]))
	}
	events.WriteString(initialEventsEnd("900"))
	conn, err := transport.New("http://bench", &http.Client{Transport: bodies{podList("900", pods...), pods[0], events.String()}}, &transport.Options{Namespace: "home"})
	if err != nil {
		b.Fatal(err)
	}
	client := dynamic.New(conn, nil)
	b.Cleanup(client.Close)
	return client.ForGVR(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace("home")
}

func BenchmarkHandle(b *testing.B) {
	pods := benchHandle(b)
	b.Run("Object", func(b *testing.B) {
		benchVerbs(b, pods.Get, pods.List, pods.Watch, pods.Follow)
	})
	lazies := dynamic.As[unstructured.Lazy](pods)
	b.Run("Lazy", func(b *testing.B) {
		benchVerbs(b, lazies.Get, lazies.List, lazies.Watch, lazies.Follow)
	})
	guests := dynamic.As[guest](pods)
	b.Run("Struct", func(b *testing.B) {
		benchVerbs(b, guests.Get, guests.List, guests.Watch, guests.Follow)
	})
}

func benchVerbs[T any](
	b *testing.B,
	get func(context.Context, string, *metav1.GetOptions) (*T, error),
	list func(context.Context, *metav1.ListOptions) iter.Seq2[*T, error],
	watch func(context.Context, *metav1.ListOptions) iter.Seq2[unstructured.WatchEvent[T], error],
	follow func(context.Context, *dynamic.FollowOptions) iter.Seq2[dynamic.Change[T], error],
) {
	b.Helper()
	b.Run("Get", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := get(b.Context(), "pod-0", nil)
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("List", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			count := 0
			for _, err := range list(b.Context(), nil) {
				if err != nil {
					b.Fatal(err)
				}
				count++
			}
			require.Equal(b, benchPods, count)
		}
	})
	b.Run("Watch", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			count := 0
			for _, err := range watch(b.Context(), nil) {
				if err != nil {
					b.Fatal(err)
				}
				count++
			}
			require.Equal(b, benchPods+1, count)
		}
	})
	b.Run("Follow", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for change, err := range follow(b.Context(), nil) {
				if err != nil {
					b.Fatal(err)
				}
				if change.Type == dynamic.Synced {
					break
				}
			}
		}
	})
}
