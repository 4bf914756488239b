package simulate

import (
	"context"
	"net/http"
	"time"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
)

// Scenario is a controller and what users do while it runs. Its functions are called in a testing/synctest bubble, many times.
type Scenario struct {
	// Server configures the API server. InMemory and Seed are set; Objects are those that exist at the start.
	Server apitest.Options
	// Run is the program under test: it runs the controller until ctx ends. When it returns before, or crashes, it is called again, as a
	// new process: it must keep its state in the cluster. ctx must reach the controller: the scheduler of the work queues is in it.
	Run func(ctx context.Context, p *Process) error
	// Steps are the users' actions, in this order and at any time. A step may wait for what the controller does.
	Steps []Step
	// Check is called in the final state, in addition to the built-in assertions, while the program still runs. It may write. nil means
	// none.
	Check func(ctx context.Context, client *dynamic.Client) error
	// Quiet is for how long nothing may be written, and Run may not return an error, for a state to be the final one: longer than the longest interval after which the
	// controller looks at its objects again. 0 means a minute.
	Quiet time.Duration
}

// Step is an action of a user. Its name completes a sentence that begins with "the user", such as "deletes the Greeting".
type Step struct {
	Name string
	Do   func(ctx context.Context, client *dynamic.Client) error
}

// Process is one life of the program under test, from its start to its end or crash. Each has connections of its own.
type Process struct {
	// Client is a client with all rights. It is closed after Run.
	Client *dynamic.Client
	// Config is the configuration of Client, for programs that open their own connections.
	Config *transport.Config
	// HTTPClient and URL are for clients of other libraries, which must use JSON.
	HTTPClient *http.Client
	URL        string
}

// Options say how many runs there are. nil and zero values mean the defaults.
type Options struct {
	// Seeds is the number of random runs; 0 means 100, a negative number none.
	Seeds int
	// FirstSeed is the first seed; the others follow it. 0 means 1.
	FirstSeed uint64
	// NoEnumeration leaves out the systematic runs, which come first: one with a crash after each write, and one for each pair of an
	// event and a write that follows it, with the event after the write.
	NoEnumeration bool
}

func (s *Scenario) quiet() time.Duration {
	if s.Quiet > 0 {
		return s.Quiet
	}
	return time.Minute
}
