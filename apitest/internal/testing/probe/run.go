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

// Run draws up to count faults for each write of the built-in kinds, and plays them on both servers. The environment variable
// ANYKIND_APITEST_KIND restricts it to resources with that prefix.
func Run(t testing.TB, sandbox, double Server, seed, count int) *Report {
	t.Helper()
	l := &lab{t: t, schemas: newSchemas(t), servers: [2]Server{sandbox, double}}
	t.Cleanup(func() {
		for _, path := range l.created {
			sandbox.Requests.Delete(t, path)
		}
	})
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
	var running sync.WaitGroup
	queue := make(chan job)
	for range parallel {
		running.Go(func() {
			for j := range queue {
				if results, played := l.play(j.probe, j.fault); played {
					mu.Lock()
					report.add(j.probe, j.fault, results)
					mu.Unlock()
				}
			}
		})
	}
	for _, j := range jobs {
		queue <- j
	}
	close(queue)
	running.Wait()
	t.Logf("%d faults in %s", len(jobs), time.Since(began))
	return report
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
