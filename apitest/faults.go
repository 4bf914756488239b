package apitest

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/apitest/internal/serve"
)

// Fault makes some requests fail.
type Fault struct {
	// Match selects the requests; nil selects all. Of the request it gets what is known before it is answered, without User and
	// Body.
	Match func(Request) bool
	// Probability is the part of the selected requests that fail, from 0 to 1; 0 means all. It is drawn from the server's Seed.
	Probability float64
	// Times is the number of requests that fail; 0 means no limit.
	Times int

	// Latency delays the request before it is executed.
	Latency time.Duration
	// Err is answered instead of the result, and the request is not executed: an error of
	// k8s.io/apimachinery/pkg/api/errors. See [TooManyRequests].
	Err error
	// Break fails the connection. Without AfterBytes the request is not executed. With it the request is executed, and so many
	// bytes of the body of the response arrive: with 0 not even the header.
	Break      Break
	AfterBytes *int
	// EventDelay delays each batch of events of a watch.
	EventDelay time.Duration
}

// Break is a way in which a connection fails.
type Break = serve.Break

const (
	// Drop closes the connection or, with HTTP/2, resets the stream.
	Drop = serve.Drop
	// Stall sends nothing more and keeps the connection open until the client leaves or the server is closed.
	Stall = serve.Stall
)

// TooManyRequests returns the error of a server that is overloaded, with a Retry-After in whole seconds.
func TooManyRequests(retryAfter time.Duration) error {
	return apierrors.NewTooManyRequests("Too many requests, please try again later.", int(retryAfter/time.Second))
}

// faultList decides which fault a request has: the first in order that applies.
type faultList struct {
	mu     sync.Mutex
	random *rand.Rand
	faults []*activeFault
}

type activeFault struct {
	Fault
	happened int
}

func (l *faultList) init(seed uint64, faults []Fault) {
	l.random = rand.New(rand.NewPCG(seed, 0))
	for _, f := range faults {
		l.faults = append(l.faults, &activeFault{Fault: f})
	}
}

// next is called for every request in the order of their arrival.
func (l *faultList) next(r *serve.Record) *serve.Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.faults {
		if f.Times > 0 && f.happened >= f.Times || f.Match != nil && !f.Match(requestOf(r)) {
			continue
		}
		if f.Probability > 0 && l.random.Float64() >= f.Probability {
			continue
		}
		f.happened++
		return &serve.Fault{Latency: f.Latency, Err: f.Err, Break: f.Break, AfterBytes: f.AfterBytes, EventDelay: f.EventDelay}
	}
	return nil
}

// Inject adds a fault for the requests from now on. A request has at most one fault: the first that applies, in the order in which
// they were added. It returns a function that removes the fault.
func (s *Server) Inject(fault Fault) (remove func()) {
	active := &activeFault{Fault: fault}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.faults = append(s.faults.faults, active)
	return func() {
		s.faults.mu.Lock()
		defer s.faults.mu.Unlock()
		s.faults.faults = slices.DeleteFunc(s.faults.faults, func(f *activeFault) bool { return f == active })
	}
}
