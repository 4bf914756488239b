package apitest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/serve"
)

// maxLoggedWarnings is the number of different warnings after which a server logs no more.
const maxLoggedWarnings = 1000

// warningLog logs each different warning once.
type warningLog struct {
	t      testing.TB // nil: nothing is logged
	mu     sync.Mutex
	logged map[string]bool
}

func (l *warningLog) add(r *Request, text string) {
	if l.t == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.logged[text] || len(l.logged) == maxLoggedWarnings {
		return
	}
	l.logged[text] = true
	target := r.Method + " " + r.Path
	if r.Method == "" {
		target = fmt.Sprintf("create %s %q", r.Resource, r.Name)
	}
	l.t.Logf("%s: warning: %s", target, text)
}

// onNotValidated returns Options.OnNotValidated for the handler, or nil.
func (s *Server) onNotValidated() func(*serve.Record, string) {
	if s.options.OnNotValidated == nil {
		return nil
	}
	return func(r *serve.Record, text string) { s.options.OnNotValidated(requestOf(r), text) }
}

// observe adds a finished request to the history and logs its warnings.
func (s *Server) observe(r *serve.Record) {
	request := requestOf(r)
	s.requests.add(request)
	for _, text := range request.Warnings {
		if s.options.OnNotValidated == nil || !serve.IsNotValidated(text) {
			s.warnings.add(&request, text)
		}
	}
}

// warnOfCreate reports the warnings of an object of Options.Objects or Create, which has no HTTP request.
func (s *Server) warnOfCreate(resource *kinds.Resource, namespace, name string, texts []string) {
	request := Request{
		Time: s.clock.Now(), User: admin().Name, Verb: "create", Group: resource.Group, Version: resource.Version, Resource: resource.Plural,
		Namespace: namespace, Name: name, Warnings: texts,
	}
	for _, text := range texts {
		if s.options.OnNotValidated != nil && serve.IsNotValidated(text) {
			s.options.OnNotValidated(request, text)
		} else {
			s.warnings.add(&request, text)
		}
	}
}
