package simulate

import (
	"context"
	"net/http"
	"time"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
)

// Scenario is a controller and the actions of its users. Its functions are called many times, in a testing/synctest bubble.
type Scenario struct {
	// Server configures the API server. InMemory and Seed are overridden. Objects are the initial objects.
	Server apitest.Options
	// Run is the program under test. It runs the controller until ctx ends. If Run returns earlier or crashes, it is called again as
	// a new process, so its state must be in the cluster. Run must pass ctx on to the controller: ctx carries the scheduler of the
	// work queues.
	Run func(ctx context.Context, p *Process) error
	// Processes is the number of processes of the program, like the replicas of a Deployment. Each may crash, lose its connection to
	// Leases and, if there are several, stop for a while as after SIGSTOP. 0 means 1.
	Processes int
	// Steps are the users' actions, in this order and at any time. A step may wait for the controller.
	Steps []Step
	// Check is called in the final state while the program still runs, in addition to the built-in assertions. It may write. nil
	// means no check.
	Check func(ctx context.Context, client *dynamic.Client) error
	// Quiet is the time without writes and without errors of Run after which a state is final. It must exceed the controller's
	// longest resync interval. 0 means a minute.
	Quiet time.Duration
}

// Step is an action of a user. Its name completes the sentence "the user …", as in "deletes the Greeting".
type Step struct {
	Name string
	Do   func(ctx context.Context, client *dynamic.Client) error
}

// Process is one life of the program under test, from its start to its end or crash. Each Process has its own connections.
type Process struct {
	// Name is "controller", or of several processes "controller-1" and so on. A restarted process has its predecessor's name.
	Name string
	// Client is a client with all rights. It is closed after Run.
	Client *dynamic.Client
	// Config is the configuration of Client, for programs that open their own connections.
	Config *transport.Config
	// HTTPClient and URL are for clients of other libraries. They must use JSON.
	HTTPClient *http.Client
	URL        string
}

// Options choose the runs. nil and zero values mean the defaults.
type Options struct {
	// Seeds is the number of random runs. 0 means 100, a negative number none.
	Seeds int
	// FirstSeed is the first seed. The following seeds are consecutive. 0 means 1.
	FirstSeed uint64
	// NoEnumeration skips the systematic runs before the random runs: a crash after each write, and each event delivered after each
	// write that follows it. There are none with several processes.
	NoEnumeration bool
	// Replay is the Replay of a Failure: only the run without faults and the failed run are executed.
	Replay string
}

func (s *Scenario) processes() int { return max(s.Processes, 1) }

func (s *Scenario) quiet() time.Duration {
	if s.Quiet > 0 {
		return s.Quiet
	}
	return time.Minute
}
