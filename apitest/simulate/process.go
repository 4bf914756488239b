package simulate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/anykind/anykind/controller/workqueue"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

const (
	maxRestartDelay = time.Minute     // of a program whose Run returned
	maxEndDelay     = 5 * time.Minute // between the end of ctx and the return of Run
)

// process is a life of the program under test; see Process.
type process struct {
	run     *run
	name    string // Process.Name
	prefix  string // of keys of choices: the name, and "" for the only process
	ctx     context.Context
	cancel  context.CancelCauseFunc
	ended   chan struct{}
	err     error // of Run, once ended is closed
	crashed bool
	// isTerminated is set before the program's ctx ends for a restart, as by SIGTERM.
	isTerminated bool
	seen         map[objectID]*unstructured.Object // nil: seen as absent
	leases       map[objectID]string               // its identity in each lease it has held

	leaseLostUntil time.Time
	stoppedUntil   time.Time
	behind         string    // the resourceVersion of its API server's watch cache until behindUntil, "" for the latest
	behindUntil    time.Time // when the watch cache is up to date again
}

// startProcess starts a process of the program, in the context of the run.
func (r *run) startProcess(number int) error {
	p := &process{
		run: r, name: "controller", ended: make(chan struct{}), seen: map[objectID]*unstructured.Object{},
		leases: map[objectID]string{},
	}
	if r.scenario.processes() > 1 {
		p.name += "-" + strconv.Itoa(number+1)
		p.prefix = p.name + " "
	}
	ctx, cancel := context.WithCancelCause(workqueue.WithScheduler(r.ctx, p.workqueueScheduler()))
	p.ctx = ctx
	p.cancel = cancel
	p.connectToServer()
	exposed, client, err := r.connect(p)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.processes[number] = p
	r.mu.Unlock()
	go labeled(ctx, r.label, func() {
		defer close(p.ended)
		defer client.Close()
		defer exposed.HTTPClient.CloseIdleConnections()
		defer func() {
			if value := recover(); value != nil {
				p.err = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
			}
		}()
		p.err = r.scenario.Run(ctx, exposed)
	})
	return nil
}

// connect returns a Process with its own connections. p is nil for the users.
func (r *run) connect(p *process) (*Process, *dynamic.Client, error) {
	cfg := r.server.Config()
	if r.day != nil && p != nil {
		cfg.TokenFile = r.day.tokenFile
	}
	cfg.WrapTransport = func(base http.RoundTripper) http.RoundTripper { return &link{run: r, process: p, base: base} }
	conn, err := transport.Open(cfg)
	if err != nil {
		return nil, nil, err
	}
	client := dynamic.New(conn, nil)
	l := &link{run: r, process: p, base: r.server.HTTPClient().Transport}
	return &Process{Name: l.name(), Client: client, Config: cfg, HTTPClient: &http.Client{Transport: l}, URL: r.server.URL}, client, nil
}

// CloseIdleConnections is for http.Client.
func (l *link) CloseIdleConnections() {
	if closer, ok := l.base.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// workqueueScheduler returns the scheduler of the work queues of a process.
func (p *process) workqueueScheduler() *workqueue.Scheduler {
	s := p.run.retryScheduler()
	s.Jitter = func(limit time.Duration) time.Duration {
		return p.run.choices.jitter(p.prefix, p.run.scheduler.now(), limit)
	}
	s.Name = func() string { return p.name + "-" + strconv.Itoa(p.run.scheduler.number("name of "+p.name)) }
	s.OnGet = func(ctx context.Context) {
		key := p.name + " worker"
		key += " #" + strconv.Itoa(p.run.scheduler.number(key))
		_ = p.run.scheduler.waitOf(ctx, p, key, p.run.choices.delay(key, "workers"))
	}
	s.Choose = func(keys []string) int {
		key := p.prefix + "key of the queue"
		key += " #" + strconv.Itoa(p.run.scheduler.number(key))
		chosen := p.run.choices.index(key, len(keys))
		p.run.choices.describe(key, keys[chosen])
		return chosen
	}
	return s
}

// retryScheduler returns a scheduler with repeatable retries, also for the users' calls.
func (r *run) retryScheduler() *workqueue.Scheduler {
	return &workqueue.Scheduler{
		OnGet:  func(context.Context) {},
		Choose: func([]string) int { return 0 },
		Backoff: func(_ string, failures int) time.Duration {
			return min(5*time.Millisecond<<min(failures-1, 17), 1000*time.Second)
		},
		Jitter: func(limit time.Duration) time.Duration { return r.choices.jitter("", r.scheduler.now(), limit) },
		Name:   func() string { return "user-" + strconv.Itoa(r.scheduler.number("name of user")) },
	}
}

// crash ends the process like SIGKILL: none of its requests arrives any more.
func (p *process) crash() {
	p.crashed = true
	p.run.trace.note(p.name, "CRASHES")
	p.cancel(errCrashed)
}

// stop ends the program's ctx like SIGTERM, and waits for Run. Only the scheduler's goroutine calls it.
func (p *process) stop() error {
	p.cancel(context.Canceled)
	if !p.run.scheduler.run(maxEndDelay, p.hasEnded) {
		return fmt.Errorf("the function Run has not returned %s after its ctx ended", maxEndDelay)
	}
	return nil
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// supervise restarts a process of the program until the run stops it, like a Deployment.
func (r *run) supervise(ctx context.Context, number int) {
	for failures := 0; ; failures++ {
		p := r.currentProcess(number)
		select {
		case <-p.ended:
		case <-ctx.Done():
			return
		}
		if ctx.Err() != nil {
			return
		}
		var delay time.Duration
		key := p.prefix + "start of process"
		key += " #" + strconv.Itoa(r.scheduler.number(key))
		switch {
		case p.crashed:
			delay = outages[r.choices.choose(key, alternatives{"outages", []int{200, 200, 200}})]
			r.choices.describe(key, "after "+delay.String())
		case p.isTerminated:
			delay = time.Second
		default:
			p.noteEnd()
			delay = min(time.Second<<min(failures, 6), maxRestartDelay)
		}
		r.disturb(delay)
		if r.scheduler.wait(ctx, key, delay) != nil {
			return
		}
		r.trace.note(p.name, "starts again")
		if err := r.startProcess(number); err != nil { //nolint:contextcheck // A new process has the run's context, not the loop's.
			r.fail("start", err)
			return
		}
	}
}

// mayStop stops the process before a request.
func (p *process) mayStop(key string) {
	if p.run.scenario.processes() == 1 {
		return
	}
	key = "stop before " + key
	if chosen := p.run.choices.choose(key, alternatives{"stops of processes", []int{4, 4}}); chosen != 0 {
		stop := stops[chosen-1]
		p.suspend(stop)
		p.run.choices.describe(key, stop.String())
	}
}

// suspend stops the process like SIGSTOP: its new and pending requests, events and workers wait.
func (p *process) suspend(duration time.Duration) {
	p.stoppedUntil = time.Now().Add(duration)
	p.run.disturb(duration)
	p.run.trace.note(p.name, "is stopped for "+duration.String())
}

// noteEnd records the return of Run before the end of its ctx.
func (p *process) noteEnd() {
	r := p.run
	r.trace.note(p.name, fmt.Sprintf("Run returns: %v", firstLine(p.err)))
	if p.err == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = r.failures + 1
	r.failed = p.err
}

func (r *run) programFailures() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failures
}

// failureSince returns the last error of Run if failures > count.
func (r *run) failureSince(count int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failures == count {
		return nil
	}
	return r.failed
}

// fault chooses the fault of a request.
func (p *process) fault(req *http.Request, r request, key string, body []byte) fault {
	if r.isLease() && time.Now().Before(p.leaseLostUntil) {
		return requestLost
	}
	faults, a := faultsOf(r, req, body)
	chosen := p.run.choices.choose(key, a)
	if chosen == 0 {
		return noFault
	}
	p.run.choices.describe(key, faults[chosen-1].String())
	if faults[chosen-1] == loseLease {
		p.loseLease(r)
	}
	return faults[chosen-1]
}

func firstLine(err error) error {
	if err == nil {
		return errors.New("nil")
	}
	return err
}
