package apitest

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/apitest/internal/serve"
)

// Fault makes requests fail.
type Fault struct {
	// Match selects the requests; nil selects all. It is called before the request is executed, so User and Body are not set.
	Match func(Request) bool
	// Probability is the fraction of selected requests to fail, from 0 to 1; 0 means all. It is drawn from Options.Seed.
	Probability float64
	// Times is the maximum number of failed requests; 0 means no limit.
	Times int

	// Latency delays the request before it is executed.
	Latency time.Duration
	// Err is the response instead of the result, an error of k8s.io/apimachinery/pkg/api/errors. The request is not executed. See
	// [TooManyRequests].
	Err error
	// Break fails the connection. Without AfterBytes the request is not executed. With AfterBytes the request is executed, and the
	// connection fails after so many bytes of the response body; 0 sends not even the header.
	Break      Break
	AfterBytes *int
	// EventDelay delays each batch of events of a watch.
	EventDelay time.Duration
}

// Break is the way a connection fails.
type Break string

const (
	// Drop closes the connection or, with HTTP/2, resets the stream.
	Drop Break = "drop"
	// Stall sends nothing more and keeps the connection open until the client closes it or the server is closed.
	Stall Break = "stall"
)

// TooManyRequests returns the error of an overloaded server, with Retry-After in whole seconds.
func TooManyRequests(retryAfter time.Duration) error {
	return apierrors.NewTooManyRequests("Too many requests, please try again later.", int(retryAfter/time.Second))
}

// faultList selects the fault of a request: the first match in order.
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

// next selects the fault of the next request. It is called for every request, in the order of their arrival.
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
		return &serve.Fault{Latency: f.Latency, Err: f.Err, Break: serve.Break(f.Break), AfterBytes: f.AfterBytes, EventDelay: f.EventDelay}
	}
	return nil
}

// Inject adds a fault for requests from now on, and returns a function to remove it. A request has at most one fault: the first
// match in the order of Inject.
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
