// Package rehearsal runs a controller against a copy of a cluster and reports its writes:
//
//	copied, err := clustercopy.From(ctx, client, nil)
//	…
//	server, err := apitest.Start(&apitest.Options{Copy: copied, Controllers: apitest.GarbageCollection})
//	…
//	report, err := rehearsal.Run(ctx, server, rehearsal.Command(os.Stderr, "./my-operator"), nil)
//	…
//	err = report.WriteText(os.Stdout, nil, nil)
//
// The controller is any process with a kubeconfig, or a function. It ends when it has written nothing for a while. Leases, Events,
// changes of the status alone and all further changes are reported separately. [Compare] compares two reports, for example of two
// versions of an operator.
//
// A rehearsal has the limits of package apitest: [Report.NotValidated] lists the checks of a cluster that were left out. Webhooks of the
// cluster cannot be reached from it, and pods run nothing.
package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/unstructured"
)

// Controller runs a controller against a server until ctx ends.
type Controller func(ctx context.Context, server *apitest.Server) error

// Options configure Run. The zero value has the defaults.
type Options struct {
	// Quiet is the time without a write before the rehearsal ends, by default 5 seconds. It begins with the controller's first
	// request for any resource but Leases. Writes of Leases and Events, dry runs and rejected writes do not count.
	Quiet time.Duration
	// Timeout limits the rehearsal, by default to 2 minutes.
	Timeout time.Duration
	// Stop limits the time of the controller to end after its ctx has ended, by default to 15 seconds.
	Stop time.Duration
}

// Outcome is the reason for the end of a rehearsal.
type Outcome string

// Outcomes of a rehearsal.
const (
	Quiet    Outcome = "quiet"     // nothing was written for Options.Quiet
	TimedOut Outcome = "timed out" // the controller still wrote after Options.Timeout
	Ended    Outcome = "ended"     // the controller ended by itself
)

// errStop ends the controller.
var errStop = errors.New("the rehearsal is over")

// Run runs a controller until it is quiet, stops it, and reports its writes. All changes of the server's objects during the run count,
// also changes by its simulated controllers. [Report.Outcome] says how the run ended: an end of the controller and a timeout are no
// errors of Run. It is an error if the controller does not stop.
func Run(ctx context.Context, server *apitest.Server, controller Controller, opts *Options) (*Report, error) {
	o := withDefaults(opts)
	before := server.Objects()
	begin := time.Now()
	log := requestLog{server, server.Clock().Now()}
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	done := make(chan error, 1)
	go func() { done <- controller(running, server) }()

	report := &Report{}
	report.Outcome, report.Err = await(ctx, log, done, o)
	if report.Outcome != Ended {
		stop(errStop)
		select {
		case err := <-done:
			if !errors.Is(err, errStop) && !errors.Is(err, context.Canceled) {
				report.Err = err
			}
		case <-time.After(o.Stop):
			return nil, fmt.Errorf("rehearsal: the controller did not end within %v after its context", o.Stop)
		}
	}
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("rehearsal: %w", err)
	}
	report.Duration = time.Since(begin)
	report.final = server.Objects()
	report.addChanges(before, report.final)
	report.addRequests(log.requests())
	return report, nil
}

func withDefaults(opts *Options) Options {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	setDefault(&o.Quiet, 5*time.Second)
	setDefault(&o.Timeout, 2*time.Minute)
	setDefault(&o.Stop, 15*time.Second)
	return o
}

func setDefault(value *time.Duration, duration time.Duration) {
	if *value <= 0 {
		*value = duration
	}
}

// polls is the number of looks at the server during Options.Quiet.
const polls = 20

// await waits until the controller has ended, is quiet, or Timeout or ctx has ended.
func await(ctx context.Context, log requestLog, done <-chan error, o Options) (Outcome, error) {
	timeout := time.NewTimer(o.Timeout)
	defer timeout.Stop()
	ticker := time.NewTicker(max(o.Quiet/polls, time.Millisecond))
	defer ticker.Stop()
	var last time.Time // of a write, by the server's clock
	same := 0          // looks without a newer write: on a busy machine, ticks and the controller are late together
	for {
		select {
		case err := <-done:
			return Ended, err
		case <-ctx.Done():
			return TimedOut, nil
		case <-timeout.C:
			return TimedOut, nil
		case <-ticker.C:
			same++
			if newest := log.lastWrite(); !newest.Equal(last) || len(log.requests(isStart)) == 0 {
				last = newest
				same = 0
			} else if same >= polls {
				return Quiet, nil
			}
		}
	}
}

// requestLog reads the requests since the begin of a rehearsal, as far as the server keeps them.
type requestLog struct {
	server *apitest.Server
	begin  time.Time // by the server's clock
}

func (l requestLog) requests(match ...func(apitest.Request) bool) []apitest.Request {
	isSince := func(r apitest.Request) bool { return !r.Time.Before(l.begin) }
	return l.server.Requests(append(match, isSince)...)
}

// lastWrite returns the time of the newest write. The number of writes would not do: the server forgets old requests.
func (l requestLog) lastWrite() (newest time.Time) {
	for _, r := range l.requests(isWrite) {
		if r.Time.After(newest) {
			newest = r.Time
		}
	}
	return newest
}

// isStart reports whether a request is of a running controller: not of discovery or leader election.
func isStart(r apitest.Request) bool { return r.Resource != "" && r.Resource != "leases" }

// isWrite reports whether a request has changed an object, except for Leases and Events.
func isWrite(r apitest.Request) bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return apitest.Succeeded(r) && !strings.Contains(r.Query, "dryRun=") && r.Resource != "leases" && r.Resource != "events"
	}
	return false
}

// isLeaseOrEvent reports whether an object is written for leader election, or for people.
func isLeaseOrEvent(obj *unstructured.Object) bool {
	return obj.GetKind() == "Lease" || obj.GetKind() == "Event"
}
