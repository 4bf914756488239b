// Package apitest provides a Kubernetes API server for tests, in the manner of net/http/httptest: it runs inside the test's
// process, is ready within a millisecond, and keeps the API's rules for any kind, custom resources included.
package apitest
