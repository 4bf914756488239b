package simulate

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

const defaultSeeds = 100

// Failure is a run in which an assertion does not hold.
type Failure struct {
	// Seed is the seed of a random run, and 0 for a systematic run or the run without faults.
	Seed uint64
	// Runs is the number of runs up to the failure. Shrinking runs do not count.
	Runs int
	// Err is the failed assertion.
	Err error
	// Replay is the value of Options.Replay that repeats the run alone. It is "" for the run without faults.
	Replay string
	// Choices are the faults and delays needed for the failure, shrunk as far as possible.
	Choices []string
	// Trace lists the events and requests of the run in their order.
	Trace string
}

// Error implements error.
func (f *Failure) Error() string {
	text := fmt.Sprintf("run %d fails", f.Runs)
	if f.Seed != 0 {
		text += fmt.Sprintf(" (seed %d)", f.Seed)
	}
	text += ": " + f.Err.Error()
	if len(f.Choices) > 0 {
		text += "\n\nIt needs:\n  " + strings.Join(f.Choices, "\n  ")
	}
	if f.Replay != "" {
		text += "\n\nTo repeat it alone:\n  &simulate.Options{Replay: " + strconv.Quote(f.Replay) + "}"
	}
	return text + "\n\nTrace:\n" + f.Trace
}

// Unwrap returns Err.
func (f *Failure) Unwrap() error { return f.Err }

// Test fails the test if a run of the scenario fails.
func Test(t *testing.T, s *Scenario, opts *Options) {
	t.Helper()
	if failure := Find(t, s, opts); failure != nil {
		t.Fatal(failure)
	}
}

// Find returns the first failure, or nil. The first run has no faults; all later runs must end in its final state. t must not be
// in a bubble.
//
// Every run must converge: for the quiet time nothing is written and Run does not fail, and the final state equals that of the
// first run. A new process must then not change any object. No write may begin after the controller has lost its lease. Run must
// return after the end of its ctx and leave no goroutines.
func Find(t *testing.T, s *Scenario, opts *Options) *Failure {
	t.Helper()
	o := Options{}
	if opts != nil {
		o = *opts
	}
	if o.Seeds == 0 {
		o.Seeds = defaultSeeds
	}
	if o.FirstSeed == 0 {
		o.FirstSeed = 1
	}
	f := &finder{t: t, scenario: s}
	first := f.run(&choices{})
	if first.failure != nil {
		first.failure.err = fmt.Errorf("without faults: %w", first.failure.err)
		return f.failure(first, &choices{})
	}
	f.want = first.state
	if o.Replay != "" {
		c, err := decodeChoices(o.Replay)
		if err != nil {
			t.Fatalf("simulate: Options.Replay: %v (it is the Replay of a Failure)", err)
		}
		if res := f.run(c); res.failure != nil {
			return f.failure(res, c)
		}
		return nil
	}
	if !o.NoEnumeration {
		if failure := f.enumerate(first); failure != nil {
			return failure
		}
	}
	for i := range o.Seeds {
		c := &choices{seed: o.FirstSeed + uint64(i)} //nolint:gosec // not negative
		if res := f.run(c); res.failure != nil {
			return f.shrunk(res, c)
		}
	}
	return nil
}

// finder searches for a failure.
type finder struct {
	t        *testing.T
	scenario *Scenario
	want     state
	runs     int
}

func (f *finder) run(c *choices) *result {
	f.runs++
	return runOnce(f.t, f.scenario, c, f.want, false)
}

// shrunk returns the failure of a run, with as few choices as possible.
func (f *finder) shrunk(res *result, c *choices) *Failure {
	runs := f.runs
	failure := f.failure(f.shrink(res, c))
	failure.Runs = runs
	return failure
}

// failure repeats a failed run to record its trace.
func (f *finder) failure(res *result, c *choices) *Failure {
	failure := &Failure{Seed: c.seed, Runs: f.runs, Err: res.failure.err, Replay: c.encode()}
	again := runOnce(f.t, f.scenario, c.copy(), f.want, true)
	failure.Trace = again.trace
	if again.failure == nil || again.failure.class != res.failure.class {
		failure.Err = fmt.Errorf("%w (a second run with the same choices does not fail in this way: Run may depend only on the server, the clock and its ctx)", res.failure.err)
	}
	for _, key := range sortedKeys(res.made) {
		failure.Choices = append(failure.Choices, key+": "+res.texts[key])
	}
	for event, write := range c.after {
		failure.Choices = append(failure.Choices, event+": only after "+write)
	}
	return failure
}
