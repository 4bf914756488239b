// Command tracing lists the namespaces and prints the spans of the list: the program's own span and, below it, a span of
// OpenTelemetry's HTTP instrumentation for each attempt of a request. The header traceparent sends the ids to the server.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
)

func main() {
	ctx := context.Background()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(printer{os.Stdout}))
	cfg, err := transport.Load(ctx, nil)
	if err == nil {
		traceRequests(cfg, provider)
		err = listNamespaces(ctx, cfg, provider)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// traceRequests makes the connections of a config trace their requests: each attempt gets a span and adds an event with the verb
// and resource to the caller's span.
func traceRequests(cfg *transport.Config, provider trace.TracerProvider) {
	cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		return otelhttp.NewTransport(next, otelhttp.WithTracerProvider(provider), otelhttp.WithPropagators(propagation.TraceContext{}))
	}
	cfg.OnAttempt = func(ctx context.Context, attempt transport.Attempt) {
		trace.SpanFromContext(ctx).AddEvent("attempt", trace.WithAttributes(
			attribute.String("k8s.verb", attempt.Verb), attribute.String("k8s.resource", attempt.Resource),
			attribute.Int("k8s.attempt", attempt.Number), attribute.Stringer("k8s.delay", attempt.Delay),
		))
	}
}

func listNamespaces(ctx context.Context, cfg *transport.Config, provider trace.TracerProvider) (err error) {
	client, err := dynamic.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	namespaces, err := client.Resource(ctx, "namespaces")
	if err != nil {
		return err
	}
	ctx, span := provider.Tracer("example").Start(ctx, "list namespaces")
	defer func() {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}()
	number := 0
	for _, err := range namespaces.List(ctx, nil) {
		if err != nil {
			return err
		}
		number++
	}
	span.SetAttributes(attribute.Int("namespaces", number))
	return nil
}

// printer prints spans. A program exports them to a collector instead.
type printer struct{ io.Writer }

// ExportSpans implements sdktrace.SpanExporter.
func (p printer) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	for _, span := range spans {
		if _, err := fmt.Fprintf(p, "%s %s %s %v\n", span.SpanContext().TraceID(), span.Name(), span.EndTime().Sub(span.StartTime()), span.Events()); err != nil {
			return err
		}
	}
	return nil
}

// Shutdown implements sdktrace.SpanExporter.
func (printer) Shutdown(context.Context) error { return nil }
