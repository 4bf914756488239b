package metrics

import (
	"context"
	"net/url"
	"strconv"

	"github.com/anykind/anykind/transport"
)

// requestBuckets are the buckets of controller-runtime and of Kubernetes' components.
var requestBuckets = []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60}

type requestSeries struct{ total, retries, duration, rateLimiter Recorder }

func newRequestSeries(b *builder) requestSeries {
	return requestSeries{
		total: b.counter("rest_client_requests_total",
			"Number of HTTP requests, partitioned by status code, method, and host.", "code", "method", "host"),
		retries: b.counter("rest_client_request_retries_total",
			"Number of request retries, partitioned by status code, verb, and host.", "code", "verb", "host"),
		duration: b.histogram(requestBuckets, "rest_client_request_duration_seconds",
			"Request latency in seconds. Broken down by verb and host.", "verb", "host"),
		rateLimiter: b.histogram(requestBuckets, "rest_client_rate_limiter_duration_seconds",
			"Client side rate limiter latency in seconds. Broken down by verb, and host.", "verb", "host"),
	}
}

// OnAttempt records an attempt of a request. It is a hook:
//
//	cfg.OnAttempt = m.OnAttempt
func (m *Metrics) OnAttempt(_ context.Context, attempt transport.Attempt) {
	host := ""
	if target, err := url.Parse(attempt.URL); err == nil {
		host = target.Host
	}
	code := "<error>"
	if attempt.StatusCode != 0 {
		code = strconv.Itoa(attempt.StatusCode)
	}
	m.request.total(code, attempt.Method, host)(1)
	m.request.duration(attempt.Method, host)(attempt.Duration.Seconds())
	if attempt.Number > 1 {
		m.request.retries(code, attempt.Method, host)(1)
	} else { // the delay of a retry also has its backoff
		m.request.rateLimiter(attempt.Method, host)(attempt.Delay.Seconds())
	}
}
