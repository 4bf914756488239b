package scripted

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// JSON responds with a body.
func JSON(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

// Status responds with a failure: a code and a reason, such as Forbidden.
func Status(code int, reason string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, StatusJSON(code, reason))
	}
}

// NotFound responds that there is no object of the name.
func NotFound(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, strings.Replace(StatusJSON(http.StatusNotFound, "NotFound"), "}", fmt.Sprintf(`,"details":{"name":%q}}`, name), 1))
	}
}

// StatusJSON returns a failure in JSON, as in a body or an ERROR event.
func StatusJSON(code int, reason string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":"as scripted"}`, code, reason)
}

// NotServed responds like an API server for an unknown path.
func NotServed(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "404 page not found", http.StatusNotFound)
}

// Hang sends nothing until the client gives up.
func Hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Break breaks the connection.
func Break(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// Watch sends events, and keeps the stream open until the client leaves.
func Watch(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Join(events, ""))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// WatchChannel sends the events of a channel, each at once, until the channel is closed or the client leaves.
func WatchChannel(events <-chan string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case event, isOpen := <-events:
				if !isOpen {
					return
				}
				_, _ = io.WriteString(w, event)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}
}

// Event returns a watch event.
func Event(eventType, object string) string {
	return `{"type":"` + eventType + `","object":` + object + "}\n"
}

// ExpiredEvent ends a watch because of an expired resourceVersion.
func ExpiredEvent() string { return Event("ERROR", StatusJSON(http.StatusGone, "Expired")) }

// InitialEventsEnd returns the bookmark after the last object of an initial list.
func InitialEventsEnd(apiVersion, kind, resourceVersion string) string {
	return Event("BOOKMARK", fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":%q,"annotations":{"k8s.io/initial-events-end":"true"}}}`,
		apiVersion, kind, resourceVersion))
}
