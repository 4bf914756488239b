// Package observe is the protocol of an observer. An observer is a process with a single library: flags configure it, commands are
// lines on stdin, and events are lines of JSON on stdout. The package imports the standard library alone: it builds beside any version.
package observe

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"
)

// Kinds of events. All but the last three have an object.
const (
	Added          = "Added"
	Modified       = "Modified"
	Deleted        = "Deleted"
	DeletedUnknown = "DeletedUnknown" // inferred from a list
	Read           = "Read"           // an object in the store, after the command list
	Listed         = "Listed"         // the end of the command list
	Synced         = "Synced"
	Blocked        = "Blocked" // a reader is in a function of its caller, after the command block
)

// Commands of the main program.
const (
	List    = "list"
	Block   = "block"
	Release = "release"
)

// Event is an observed event.
type Event struct {
	Kind      string
	Namespace string `json:",omitempty"`
	Name      string `json:",omitempty"`
	UID       string `json:",omitempty"`
	Version   string `json:",omitempty"`
}

// Options configure an observer.
type Options struct {
	// Server is the URL of the API server.
	Server string
	// Custom selects widgets, a custom resource, in place of ConfigMaps.
	Custom bool
	// Protobuf requests protobuf before JSON.
	Protobuf bool
	// Slow is the time for each change in the store.
	Slow time.Duration
	// Resync is the resync period of a second handler, 0 for none.
	Resync time.Duration
	// Mode is a mode of the observer.
	Mode string
}

// Args returns the flags of the options.
func (o *Options) Args() []string {
	return []string{
		"-server", o.Server, fmt.Sprintf("-custom=%t", o.Custom), fmt.Sprintf("-protobuf=%t", o.Protobuf),
		"-slow", o.Slow.String(), "-resync", o.Resync.String(), "-mode", o.Mode,
	}
}

// Program is an observer.
type Program struct {
	Options

	mu       sync.Mutex
	output   *json.Encoder
	released chan struct{}
}

// Main runs an observer until stdin ends. run starts the library, and returns the functions for the commands list and block.
func Main(run func(ctx context.Context, p *Program) (list func() []Event, block func(), err error)) {
	p := &Program{output: json.NewEncoder(os.Stdout), released: make(chan struct{})}
	flag.StringVar(&p.Server, "server", "", "URL of the API server")
	flag.BoolVar(&p.Custom, "custom", false, "observe widgets")
	flag.BoolVar(&p.Protobuf, "protobuf", false, "request protobuf")
	flag.DurationVar(&p.Slow, "slow", 0, "time for each change in the store")
	flag.DurationVar(&p.Resync, "resync", 0, "resync period of a second handler")
	flag.StringVar(&p.Mode, "mode", "", "mode of the observer")
	flag.Parse()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	list, block, err := run(ctx, p)
	if err != nil {
		fmt.Fprintln(os.Stderr, "observe:", err)
		return
	}
	for commands := bufio.NewScanner(os.Stdin); commands.Scan(); {
		switch commands.Text() {
		case List:
			for _, event := range list() {
				event.Kind = Read
				p.Emit(event)
			}
			p.Emit(Event{Kind: Listed})
		case Block:
			go block()
		case Release:
			close(p.released)
		}
	}
}

// Emit writes an event.
func (p *Program) Emit(event Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.output.Encode(event)
}

// Wait blocks a reader until the command release.
func (p *Program) Wait() {
	p.Emit(Event{Kind: Blocked})
	<-p.released
}
