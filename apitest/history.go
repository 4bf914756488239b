package apitest

import (
	"slices"
	"sync"
	"time"

	"github.com/anykind/anykind/apitest/internal/serve"
)

// Request is a finished request: with a response, or with a broken connection.
type Request struct {
	Time     time.Time
	Duration time.Duration // of a watch until its end
	User     string        // "" if it was not authenticated
	// Verb is get, list, watch, create, update, patch, delete or deletecollection. For a non-resource path, Verb is the method in
	// lower case and Resource is "".
	Verb                                                   string
	Group, Version, Resource, Subresource, Namespace, Name string
	Method, Path, Query                                    string
	UserAgent, ContentType                                 string
	Body                                                   []byte // as sent, Protobuf converted to JSON; read-only; nil in old requests, see Options.History
	// Warnings are the texts of the response's Warning headers and the texts for Options.OnNotValidated.
	Warnings []string
	Code     int   // of the response; 0 if the connection broke before it
	Revision int64 // the resourceVersion of the last write when the request arrived
}

// maxBodies is the limit of the bytes of bodies in the history.
const maxBodies = 64 << 20

// requestLog is the last requests.
type requestLog struct {
	mu    sync.Mutex
	limit int
	last  []Request
	// bodies is the size of the bodies in last. Requests before index withBody have no body any more.
	bodies, withBody int
}

func (l *requestLog) add(r Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.last) >= 2*l.limit {
		l.withBody = max(0, l.withBody-(len(l.last)-l.limit))
		l.last = slices.Clone(l.last[len(l.last)-l.limit:])
	}
	l.last = append(l.last, r)
	l.bodies += cap(r.Body)
	for l.bodies > maxBodies || len(l.last)-l.withBody > l.limit {
		oldest := &l.last[l.withBody]
		l.bodies -= cap(oldest.Body)
		oldest.Body = nil
		l.withBody++
	}
}

func requestOf(r *serve.Record) Request {
	request := Request{
		Time: r.Time, Duration: r.Duration, User: r.User, Verb: r.Verb, Method: r.Method, Path: r.Path, Query: r.Query,
		UserAgent: r.UserAgent, ContentType: r.ContentType, Body: r.Body, Warnings: r.Warnings, Code: r.Code, Revision: r.Revision,
	}
	if r.IsResource {
		request.Group = r.Group
		request.Version = r.Version
		request.Resource = r.Resource
		request.Subresource = r.Subresource
		request.Namespace = r.Namespace
		request.Name = r.Name
	}
	return request
}

// Requests returns the finished requests in the order of their end, without running watches. A request is included if every match
// returns true.
func (s *Server) Requests(match ...func(Request) bool) []Request {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	var found []Request
	for _, r := range s.requests.last[max(0, len(s.requests.last)-s.requests.limit):] {
		if !slices.ContainsFunc(match, func(matches func(Request) bool) bool { return !matches(r) }) {
			found = append(found, r)
		}
	}
	return found
}
