package simulate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/controller/workqueue"
	"github.com/anykind/anykind/dynamic"
)

const (
	faultsAfterSteps = 30 * time.Second
	maxStepTime      = 30 * time.Minute // for all steps together
	maxSettlings     = 30               // attempts to reach a quiet time without writes and failures
	leakedSleep      = time.Hour        // slept after a leak, for leaked sleeping goroutines to end within the bubble
)

// run is a run of a scenario.
type run struct {
	scenario  *Scenario
	choices   *choices
	scheduler *scheduler
	trace     *trace
	server    *apitest.Server
	user      *dynamic.Client
	ctx       context.Context
	label     string // of the goroutines of processes, unique
	running   sync.WaitGroup
	watches   atomic.Int64 // open watches of all processes and users
	day       *day         // nil for a run of Find

	mu             sync.Mutex
	processes      []*process
	failure        *cause
	history        []string  // the keys of arrived requests
	versions       []string  // the resourceVersions of writes
	failures       int       // returns of Run with an error before the end of ctx
	failed         error     // the last of these errors
	disturbedUntil time.Time // end of the effects of past faults
	downUntil      time.Time // the server is being restarted
}

// cause is the reason why a run failed. Its class identifies equal failures of different runs.
type cause struct {
	class string
	err   error
}

// result is the result of a run.
type result struct {
	failure *cause
	state   state
	trace   string
	history []string
	order   []string // all keys in the order of their release
	made    map[string]int
	texts   map[string]string
}

// maxVersions is the number of kept resourceVersions.
const maxVersions = 64

// runOnce runs a scenario in its own bubble. want is the expected final state, nil for any.
func runOnce(t *testing.T, s *Scenario, c *choices, want state, keepTrace bool) (res *result) {
	t.Helper()
	return runDay(t, s, c, nil, want, keepTrace)
}

// runDay runs a day of a scenario in its own bubble. For a nil d it is runOnce.
func runDay(t *testing.T, s *Scenario, c *choices, d *day, want state, keepTrace bool) (res *result) {
	t.Helper()
	c.made = map[string]int{}
	c.texts = map[string]string{}
	var r *run
	defer func() {
		if value := recover(); value != nil { // the bubble cannot end
			res = r.result(nil)
			if res.failure == nil {
				res.failure = &cause{"leak", fmt.Errorf("goroutines do not end: %v", value)}
			}
		}
	}()
	var final state
	synctest.Test(t, func(*testing.T) {
		r = &run{scenario: s, choices: c, scheduler: newScheduler(c), processes: make([]*process, s.processes()), day: d}
		r.trace = &trace{isKept: keepTrace, isDay: d != nil, start: time.Now()}
		r.scheduler.isDay = d != nil
		r.label = rand.Text()
		final = r.execute(want)
	})
	return r.result(final)
}

func (r *run) result(final state) *result {
	return &result{
		failure: r.failure, state: final, trace: r.trace.String(), history: r.history, order: r.scheduler.order, made: r.choices.made, texts: r.choices.texts,
	}
}

// fail records the first reason why the run failed.
func (r *run) fail(class string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure == nil {
		r.failure = &cause{class, err}
		r.trace.note("", "FAILS: "+strings.SplitN(err.Error(), "\n", 2)[0])
	}
}

func (r *run) hasFailed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure != nil
}

func (r *run) disturb(duration time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if until := time.Now().Add(duration); until.After(r.disturbedUntil) {
		r.disturbedUntil = until
	}
}

// remainingOutage returns the time until the end of the server's restart.
func (r *run) remainingOutage() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Until(r.downUntil)
}

func (r *run) noteVersion(data []byte) {
	obj := decode(data)
	if obj == nil || obj.GetResourceVersion() == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.versions) == 0 {
		if version, err := strconv.ParseInt(obj.GetResourceVersion(), 10, 64); err == nil {
			r.versions = append(r.versions, strconv.FormatInt(version-1, 10))
		}
	}
	if len(r.versions) >= maxVersions {
		r.versions = slices.Clone(r.versions[maxVersions/2:])
	}
	r.versions = append(r.versions, obj.GetResourceVersion())
}

// addHistory records the key and the body of an arrived request. Bodies with random values are left out.
func (r *run) addHistory(key string, body []byte) {
	if r.day != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if strings.Contains(key, "leases.") {
		body = nil // identities are random
	}
	r.history = append(r.history, fmt.Sprintf("%s %s %s", r.scheduler.now(), key, body))
}

// execute runs the scenario and returns the final state.
func (r *run) execute(want state) state {
	ctx := workqueue.WithScheduler(context.Background(), r.retryScheduler()) //nolint:forbidigo // the run ends with this function
	ctx, cancel := context.WithCancel(ctx)
	r.ctx = ctx
	opts := r.scenario.Server
	opts.InMemory = true
	if opts.OnNotValidated == nil { // a run is repeated too often for a text each time
		opts.OnNotValidated = func(apitest.Request, string) {}
	}
	opts.Seed = r.choices.seed + 1
	if r.day != nil {
		r.day.configure(r, &opts)
	}
	server, err := apitest.Start(&opts)
	if err != nil {
		cancel()
		r.fail("start", err)
		return nil
	}
	r.server = server
	var final state
	_, r.user, err = r.connect(nil)
	if err == nil {
		final = r.simulate(want)
	} else {
		r.fail("start", err)
	}
	r.choices.ended.Store(true)
	cancel()
	r.scheduler.run(time.Second, nil)
	r.running.Wait()
	if r.user != nil {
		r.user.Close()
	}
	server.Close()
	synctest.Wait()
	if leaked := goroutines(r.label); leaked != "" {
		r.fail("leak", fmt.Errorf("goroutines of Run are left after its end:\n%s", leaked))
		time.Sleep(leakedSleep)
	}
	return final
}

// simulate runs the program and the steps, and checks the assertions.
func (r *run) simulate(want state) state {
	stop := r.startProgram()
	var done atomic.Bool
	r.running.Go(func() {
		r.doSteps()
		done.Store(true)
	})
	limit := maxStepTime
	hasEnded := done.Load
	if r.day != nil {
		limit += r.day.duration()
		hasEnded = r.day.begin(&done)
	}
	if !r.scheduler.run(limit, func() bool { return hasEnded() || r.hasFailed() }) {
		r.fail("step", errors.New("a step of the user does not end: it waits for something that never happens"))
	}
	if r.day != nil {
		r.day.assert()
	}
	if r.choices.isUnusual() && !r.hasFailed() {
		r.scheduler.run(faultsAfterSteps, r.hasFailed)
	}
	r.choices.ended.Store(true)
	r.trace.add("", "no faults from now on")
	r.settle()
	final := r.finalState()
	if difference := final.difference(want); want != nil && difference != "" && !r.hasFailed() {
		r.fail("state", errors.New("the final state differs from a run without faults:\n  "+difference))
	}
	r.check()
	stop()
	if r.hasFailed() {
		return final
	}
	r.trace.add("", "a second run begins, which should write nothing")
	before := r.objectVersions()
	stop = r.startProgram()
	r.settle()
	stop()
	if changed := changes(before, r.objectVersions()); len(changed) > 0 && !r.hasFailed() {
		r.fail("idempotence", fmt.Errorf("a second run has changed %s", strings.Join(changed, ", ")))
	}
	return final
}

// startProgram starts the processes of the program under test. The returned stop ends them one after another.
func (r *run) startProgram() (stop func()) {
	ctx, cancel := context.WithCancel(r.ctx)
	var supervisors sync.WaitGroup
	for number := range r.processes {
		if err := r.startProcess(number); err != nil {
			r.fail("start", err)
			r.processes = r.processes[:number]
			break
		}
		supervisors.Go(func() { r.supervise(ctx, number) })
	}
	return func() {
		cancel()
		supervisors.Wait()
		for number := range r.processes {
			if err := r.currentProcess(number).stop(); err != nil {
				r.fail("end", err)
			}
		}
	}
}

func (r *run) currentProcess(number int) *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.processes[number]
}

func (r *run) doSteps() {
	for i, step := range r.scenario.Steps {
		key := fmt.Sprintf("step %d", i+1)
		pause := pauses[r.choices.choose(key, alternatives{"steps", []int{150, 150, 150, 150, 50}})]
		if r.day != nil {
			pause = r.day.pauseBefore(i, len(r.scenario.Steps))
		}
		r.choices.describe(key, pause.String()+" after the one before")
		if r.scheduler.wait(r.ctx, key, pause) != nil {
			return
		}
		r.trace.add("user", step.Name)
		if err := step.Do(r.ctx, r.user); err != nil && r.ctx.Err() == nil {
			r.fail("step", fmt.Errorf("the user %s: %w", step.Name, err))
			return
		}
	}
}

// settle runs until a quiet time passes without writes to the compared objects and without failures of Run.
func (r *run) settle() {
	var changed []string
	var failed error
	for range maxSettlings {
		r.mu.Lock()
		disturbed := time.Until(r.disturbedUntil)
		r.mu.Unlock()
		r.scheduler.run(max(disturbed, 0), r.hasFailed)
		before := r.objectVersions()
		failures := r.programFailures()
		r.scheduler.run(r.scenario.quiet(), r.hasFailed)
		changed = changes(before, r.objectVersions())
		failed = r.failureSince(failures)
		if r.hasFailed() || len(changed) == 0 && failed == nil {
			return
		}
	}
	if len(changed) == 0 {
		r.fail("run", fmt.Errorf("the function Run fails at every start: %w", failed))
		return
	}
	r.fail("convergence", fmt.Errorf("the controller does not stop writing: %s", strings.Join(changed, ", ")))
}

func (r *run) check() {
	if r.scenario.Check == nil || r.hasFailed() {
		return
	}
	var ended atomic.Bool
	r.running.Go(func() {
		if err := r.scenario.Check(r.ctx, r.user); err != nil {
			r.fail("check", err)
		}
		ended.Store(true)
	})
	if !r.scheduler.run(maxStepTime, ended.Load) {
		r.fail("check", errors.New("the function Check does not return"))
	}
}
