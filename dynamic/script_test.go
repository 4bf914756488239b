package dynamic_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/require"
)

// exchanges is a scripted server of whole exchanges: it answers discovery, and every other request with the next of
// its answers. A request behind the last is answered with 418, which ends everything.
type exchanges struct {
	mu       sync.Mutex
	requests []string
	accepts  []string
	written  string // the last request with a body
	answers  []answer
}

// answer is one answer of a scripted server.
type answer struct {
	status int // 200 unless set
	body   string
	stays  bool // the body does not end before the client leaves
}

func (s *exchanges) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/api" || r.URL.Path == "/apis" {
		(&wire{}).ServeHTTP(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.requests = append(s.requests, strings.Replace(r.Method+" "+r.RequestURI, "/api/v1/namespaces/home/pods", "…", 1))
	if len(body) > 0 {
		s.written = s.requests[len(s.requests)-1] + " " + r.Header.Get("Content-Type") + " " + string(body)
	}
	s.accepts = append(s.accepts, r.Header.Get("Accept"))
	next := answer{status: http.StatusTeapot, body: "the script is over"}
	if len(s.answers) > 0 {
		next, s.answers = s.answers[0], s.answers[1:]
	}
	s.mu.Unlock()
	if next.status != 0 {
		w.WriteHeader(next.status)
	}
	fmt.Fprint(w, next.body)
	if next.stays {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

func (s *exchanges) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

func (s *exchanges) wrote() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written
}

func (s *exchanges) accepted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.accepts...)
}

// exchanging gives the pods of a scripted server, in the namespace "home".
func exchanging(t *testing.T, answers ...answer) (*dynamic.Resource, *exchanges) {
	t.Helper()
	server := &exchanges{answers: answers}
	listening := httptest.NewServer(server)
	client, err := dynamic.Connect(t.Context(), &transport.Config{Server: listening.URL, Options: transport.Options{Namespace: "home"}})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close(); listening.Close() })
	return resource(t, client, "pods"), server
}

func says(body string) answer { return answer{body: body} }

func refuses(status int, reason string) answer {
	return answer{status: status, body: fmt.Sprintf(
		`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"as scripted","reason":%q,"code":%d}`, reason, status)}
}
