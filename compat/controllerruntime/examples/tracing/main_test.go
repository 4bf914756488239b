package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// attributesOf returns a span's attributes as text.
func attributesOf(list []attribute.KeyValue) map[string]string {
	texts := map[string]string{}
	for _, attr := range list {
		texts[string(attr.Key)] = attr.Value.String()
	}
	return texts
}

func TestListNamespaces_HasSpanOfRequest(t *testing.T) {
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t), Context: "admin"})
	require.NoError(t, err)
	spans := tracetest.NewInMemoryExporter()
	printed := &bytes.Buffer{}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithSyncer(printer{printed}))
	traceRequests(cfg, provider)
	require.NoError(t, listNamespaces(t.Context(), cfg, provider))
	var list, request tracetest.SpanStub
	for _, span := range spans.GetSpans() {
		switch {
		case span.Name == "list namespaces":
			list = span
		case span.Parent.IsValid():
			request = span
		}
	}
	assert.NotEmpty(t, attributesOf(list.Attributes)["namespaces"])
	require.Len(t, list.Events, 1)
	assert.Equal(t, map[string]string{"k8s.verb": "list", "k8s.resource": "namespaces", "k8s.attempt": "1", "k8s.delay": "0s"}, attributesOf(list.Events[0].Attributes))
	assert.Equal(t, list.SpanContext.SpanID(), request.Parent.SpanID())
	attributes := attributesOf(request.Attributes)
	assert.Equal(t, "GET", attributes["http.request.method"])
	assert.Equal(t, "200", attributes["http.response.status_code"])
	assert.Contains(t, attributes["url.full"], "/api/v1/namespaces")
	assert.Contains(t, printed.String(), list.SpanContext.TraceID().String()+" list namespaces ")
}

// TestTraceRequests_EachAttemptHasSpan has a server that rejects the first attempt with Retry-After and then fails.
func TestTraceRequests_EachAttemptHasSpan(t *testing.T) {
	parents := make(chan string, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parents <- r.Header.Get("traceparent")
		if len(parents) == 1 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	cfg := &transport.Config{Server: server.URL}
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	traceRequests(cfg, provider)
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	defer conn.Close()
	ctx, span := provider.Tracer("test").Start(t.Context(), "call")
	_, err = conn.Do(ctx, &transport.Request{Method: http.MethodGet, Path: "/api/v1/pods"})
	require.Error(t, err)
	span.End()
	recorded := spans.GetSpans()
	require.Len(t, recorded, 3)
	for i, code := range []string{"429", "403"} {
		assert.Equal(t, code, attributesOf(recorded[i].Attributes)["http.response.status_code"])
		assert.Equal(t, codes.Error, recorded[i].Status.Code)
		assert.Equal(t, span.SpanContext().SpanID(), recorded[i].Parent.SpanID())
		assert.Equal(t, fmt.Sprintf("00-%s-%s-01", recorded[i].SpanContext.TraceID(), recorded[i].SpanContext.SpanID()), <-parents)
	}
	assert.Len(t, recorded[2].Events, 2)
}
