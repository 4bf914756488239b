package metrics

import (
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller/webhook"
)

type webhookSeries struct{ duration, total, inFlight, panics Recorder }

func newWebhookSeries(b *builder) webhookSeries {
	return webhookSeries{
		duration: b.histogram(decades, "controller_runtime_webhook_latency_seconds",
			"Histogram of the latency of processing admission requests", "webhook"),
		total: b.counter("controller_runtime_webhook_requests_total", "Total number of admission requests by HTTP status code.", "webhook", "code"),
		inFlight: b.gauge("controller_runtime_webhook_requests_in_flight",
			"Current number of admission requests being served.", "webhook"),
		panics: b.counter("controller_runtime_webhook_panics_total", "Total number of webhook panics"),
	}
}

// Webhook returns a handler that records the requests of a webhook. path is the value of the label webhook:
//
//	mux.Handle("/validate", m.Webhook("/validate", webhook.Validate(validate, &webhook.Options{OnRequest: m.OnWebhookRequest})))
func (m *Metrics) Webhook(path string, handler http.Handler) http.Handler {
	duration := m.webhook.duration(path)
	inFlight := m.webhook.inFlight(path)
	for _, code := range []int{http.StatusOK, http.StatusInternalServerError} {
		m.webhook.total(path, strconv.Itoa(code))(0)
	}
	var running atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		inFlight(float64(running.Add(1)))
		response := &statusWriter{ResponseWriter: w, code: http.StatusOK}
		defer func() { inFlight(float64(running.Add(-1))) }()
		handler.ServeHTTP(response, r)
		// After a panic there is no response: net/http closes the connection.
		duration(time.Since(start).Seconds())
		m.webhook.total(path, strconv.Itoa(response.code))(1)
	})
}

// OnWebhookRequest counts a panic of a webhook's function. It is the hook OnRequest of webhook.Options.
func (m *Metrics) OnWebhookRequest(result webhook.RequestResult) {
	if _, isPanic := errors.AsType[*cache.PanicError](result.Err); isPanic {
		m.webhook.panics()(1)
	}
}

// statusWriter keeps the status code of a response.
type statusWriter struct {
	http.ResponseWriter

	code        int
	wroteHeader bool
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(code int) {
	if !w.wroteHeader && code >= http.StatusOK { // 1xx precede the header
		w.wroteHeader = true
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *statusWriter) Write(data []byte) (int, error) {
	w.wroteHeader = true
	return w.ResponseWriter.Write(data)
}

// Unwrap returns the writer for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
