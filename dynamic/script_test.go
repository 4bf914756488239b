package dynamic_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

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
	began    time.Time // when the first of answers was asked for; zero while it was not
}

// answer is one answer of a scripted server.
type answer struct {
	status int // 200 unless set
	body   string
	stays  bool // the body does not end before the client leaves
	// What follows is for bubble alone.
	mute  bool          // the answer never begins
	lasts time.Duration // the same answer is given for so long
	then  string        // comes behind the body again and again,
	after time.Duration // with such pauses
}

func (s *exchanges) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/api" || r.URL.Path == "/apis" {
		(&wire{}).ServeHTTP(w, r)
		return
	}
	next := s.next(r)
	if next.status != 0 {
		w.WriteHeader(next.status)
	}
	fmt.Fprint(w, next.body)
	if next.stays {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// next notes a request and finds its answer.
func (s *exchanges) next(r *http.Request) answer {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, strings.Replace(r.Method+" "+r.URL.RequestURI(), "/api/v1/namespaces/home/pods", "…", 1))
	if len(body) > 0 {
		s.written = s.requests[len(s.requests)-1] + " " + r.Header.Get("Content-Type") + " " + string(body)
	}
	s.accepts = append(s.accepts, r.Header.Get("Accept"))
	for len(s.answers) > 0 {
		if s.began.IsZero() {
			s.began = time.Now()
		}
		next := s.answers[0]
		if time.Since(s.began) < next.lasts {
			return next
		}
		s.answers, s.began = s.answers[1:], time.Time{}
		if next.lasts == 0 {
			return next
		}
	}
	return answer{status: http.StatusTeapot, body: "the script is over"}
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
