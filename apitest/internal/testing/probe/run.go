package probe

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

const parallel = 16 // faults played concurrently

// newLab returns a lab for two servers. It deletes cluster-scoped objects at the end of the test.
func newLab(t testing.TB, sandbox, double Server) *lab {
	t.Helper()
	l := &lab{t: t, schemas: newSchemas(t), servers: [2]Server{sandbox, double}}
	t.Cleanup(func() {
		for _, path := range l.created {
			sandbox.Requests.Delete(t, path)
		}
	})
	return l
}

// Run draws up to count faults for each write of the built-in kinds, and plays them on both servers. The environment variable
// ANYKIND_APITEST_KIND restricts it to resources with that prefix.
func Run(t testing.TB, sandbox, double Server, seed, count int) *Report {
	t.Helper()
	l := newLab(t, sandbox, double)
	r := rand.New(rand.NewPCG(uint64(seed), 37)) //nolint:gosec // repeatable
	type job struct {
		probe *probe
		fault fault
	}
	var jobs []job
	for _, s := range readSeeds(t) {
		if !strings.HasPrefix(s.name(), os.Getenv("ANYKIND_APITEST_KIND")) {
			continue
		}
		for _, p := range l.prepare(s) {
			for _, f := range l.faults(r, p, count) {
				jobs = append(jobs, job{p, f})
			}
		}
	}
	began := time.Now()
	report := &Report{Rows: map[string]*Row{}}
	var mu sync.Mutex
	concurrently(jobs, func(j job) {
		if results, played := l.play(j.probe, j.fault); played {
			mu.Lock()
			defer mu.Unlock()
			report.add(j.probe, j.fault, results)
		}
	})
	t.Logf("%d cases in %s", len(jobs), time.Since(began).Round(time.Second))
	return report
}

// concurrently calls play with each item.
func concurrently[T any](items []T, play func(T)) {
	var running sync.WaitGroup
	queue := make(chan T)
	for range parallel {
		running.Go(func() {
			for item := range queue {
				play(item)
			}
		})
	}
	for _, item := range items {
		queue <- item
	}
	close(queue)
	running.Wait()
}

// Summary returns the counts of all cases.
func (r *Report) Summary() string {
	cases := 0
	rejected := 0
	for _, row := range r.Rows {
		cases += row.Cases
		rejected += row.Rejected
	}
	return fmt.Sprintf("%d cases, %d rejected by the real server, %d of them unnoticed by apitest, %d rejected by apitest only, %d by both for other causes",
		cases, rejected, len(r.Unnoticed), len(r.TooStrict), len(r.OtherCause))
}
