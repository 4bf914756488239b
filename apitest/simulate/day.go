package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anykind/anykind/apitest"
)

const (
	// dayRarity divides the weights of the faults of requests, watches and workers: a day has some tens of thousands of them.
	dayRarity = 100
	// dayHistory is the default of apitest.Options.History during a day. The server's memory is flat once the history is full.
	dayHistory = 2000
	// maxStepGap is the time between the users' steps in the run without operations.
	maxStepGap = 10 * time.Second
)

// DayOptions configure Day. nil and zero values mean the defaults.
type DayOptions struct {
	// Seeds is the number of days. 0 means 1.
	Seeds int
	// FirstSeed is the first seed. The following seeds are consecutive. 0 means 1.
	FirstSeed uint64
	// Duration is the virtual time of a day. The default is 24 hours, the minimum an hour. Growth is found from four hours on.
	Duration time.Duration
	// MaxRequests limits the requests of all processes in each second of virtual time. 0 means no limit.
	MaxRequests int
}

// Day runs the program of a scenario for a day of virtual time with the operations of a cluster: processes crash and are restarted, the
// server restarts, compacts its history and is upgraded, credentials rotate, clocks jump, and the leader is stopped as by SIGSTOP. A
// seed determines the times. Step number i of n begins at about i/n of the day.
//
// The final state must be that of a short run without operations; the other assertions of [Find] hold, too. In addition the heap,
// the goroutines of Run, its watches and the median of its requests a minute must not grow after the first hours, so tests in parallel
// disturb a Day. The table of these figures is logged. t must not be in a bubble.
func Day(t *testing.T, s *Scenario, opts *DayOptions) {
	t.Helper()
	o := DayOptions{}
	if opts != nil {
		o = *opts
	}
	if failure := findInDays(t, s, &o, (*day).drawOperations, func(seed uint64, d *day) { t.Logf("day of seed %d:\n%s", seed, d.table()) }); failure != nil {
		t.Fatal(failure)
	}
}

// findInDays returns the first failure of the days, or of the run without operations before them. plan returns the operations of a
// day. onDay is called after each day.
func findInDays(t *testing.T, s *Scenario, o *DayOptions, plan func(*day) []operation, onDay func(seed uint64, d *day)) *Failure {
	t.Helper()
	tokenFile := filepath.Join(t.TempDir(), "token")
	first := runDay(t, s, &choices{}, &day{options: *o, tokenFile: tokenFile}, nil, false)
	if first.failure != nil {
		return &Failure{Runs: 1, Err: fmt.Errorf("without operations: %w", first.failure.err), Trace: first.trace}
	}
	for i := range max(o.Seeds, 1) {
		seed := max(o.FirstSeed, 1) + uint64(i) //nolint:gosec // not negative
		d := &day{options: *o, tokenFile: tokenFile, plan: plan}
		res := runDay(t, s, &choices{seed: seed, rarity: dayRarity}, d, first.state, false)
		onDay(seed, d)
		if res.failure != nil {
			return &Failure{Seed: seed, Runs: i + 2, Err: res.failure.err, Trace: res.trace}
		}
	}
	return nil
}

// day is a day of a run.
type day struct {
	options   DayOptions
	plan      func(d *day) []operation // nil for the run without operations
	tokenFile string
	users     []apitest.User // of the scenario
	tokens    int            // number of tokens so far
	run       *run
	requests  requestMeter
	figures   []hourFigures // at the end of each hour
	isNewer   atomic.Bool
}

func (d *day) duration() time.Duration {
	if d.options.Duration == 0 {
		return 24 * time.Hour
	}
	return max(d.options.Duration, time.Hour)
}

func (d *day) hours() int { return int(d.duration() / time.Hour) }

// configure sets the options of the server before its start.
func (d *day) configure(r *run, opts *apitest.Options) {
	d.run = r
	d.users = opts.Users
	opts.Users = d.nextUsers()
	if opts.History == 0 {
		opts.History = dayHistory
	}
	_ = d.writeToken() // a failed write fails the requests of Run
}

// begin starts the operations. The returned function reports whether the day has ended, and reads the figures of each hour.
func (d *day) begin(hasDoneSteps *atomic.Bool) (hasEnded func() bool) {
	r := d.run
	if d.plan == nil {
		return hasDoneSteps.Load
	}
	for i, o := range d.plan(d) {
		r.running.Go(func() {
			if r.scheduler.wait(r.ctx, "operation "+strconv.Itoa(i+1), time.Until(r.scheduler.start.Add(o.at))) != nil {
				return
			}
			r.trace.note("operator", o.name)
			o.do()
		})
	}
	r.running.Go(func() { // wakes the scheduler
		for n := range d.hours() {
			if r.scheduler.wait(r.ctx, "end of hour "+strconv.Itoa(n+1), time.Until(r.scheduler.start.Add(time.Duration(n+1)*time.Hour))) != nil {
				return
			}
		}
	})
	return func() bool {
		now := r.scheduler.now()
		for len(d.figures) < d.hours() && now >= time.Duration(len(d.figures)+1)*time.Hour {
			d.read()
		}
		return hasDoneSteps.Load() && now >= d.duration()
	}
}

// pauseBefore returns the time until step i of count.
func (d *day) pauseBefore(i, count int) time.Duration {
	interval := d.duration() / time.Duration(count)
	if d.plan == nil {
		return min(interval, maxStepGap)
	}
	at := interval * time.Duration(i)
	at += d.random("step "+strconv.Itoa(i), interval*3/4)
	return max(at-d.run.scheduler.now(), 0)
}

// random returns a duration below limit.
func (d *day) random(key string, limit time.Duration) time.Duration {
	return time.Duration(d.run.choices.hash("day "+key) % uint64(limit)) //nolint:gosec // positive
}

// nextUsers returns the users of the server with a new token of the program.
func (d *day) nextUsers() []apitest.User {
	d.tokens++
	program := apitest.User{Name: "simulated", Groups: []string{"system:masters"}, Token: d.token()}
	return append([]apitest.User{program}, d.users...)
}

func (d *day) token() string { return "token-" + strconv.Itoa(d.tokens) }

func (d *day) writeToken() error { return os.WriteFile(d.tokenFile, []byte(d.token()), 0o600) }

// upgraded returns a response to /version, after an upgrade with the next minor version.
func (d *day) upgraded(response *http.Response) (*http.Response, error) {
	if !d.isNewer.Load() || response.StatusCode != http.StatusOK {
		return response, nil
	}
	var version map[string]string
	err := json.NewDecoder(response.Body).Decode(&version)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	minor, err := strconv.Atoi(version["minor"])
	if err != nil {
		return nil, err
	}
	version["minor"] = strconv.Itoa(minor + 1)
	version["gitVersion"] = "v" + version["major"] + "." + version["minor"] + ".0"
	data, err := json.Marshal(version)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(data))
	response.ContentLength = int64(len(data))
	response.Header.Del("Content-Length")
	return response, nil
}
