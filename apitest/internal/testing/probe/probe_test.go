package probe

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/internal/testing/compare"
	"github.com/anykind/anykind/apitest/internal/testing/realserver"
	"github.com/anykind/anykind/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func number(t testing.TB, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	value, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return value
}

// casesOfWrite is the number of faults drawn for each write of a kind in CI.
const casesOfWrite = 100

// TestProbe_NoRejectionUnnoticed plays faults of every field of the built-in kinds on both servers.
func TestProbe_NoRejectionUnnoticed(t *testing.T) {
	sandbox := compare.Sandbox(t)
	conn, err := transport.Open(apitest.NewServer(t, nil).Config())
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	double := Server{Requests: realserver.New(conn), Namespace: sandbox.Namespace}
	real := Server{Requests: sandbox.Requests, Namespace: sandbox.Namespace}
	double.send(t, "POST", "/api/v1/namespaces", nil, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": sandbox.Namespace}})
	report := run(t, real, double, number(t, "ANYKIND_APITEST_SEED", 1), number(t, "ANYKIND_APITEST_PROBES", casesOfWrite))
	cases := 0
	for _, row := range report.Rows {
		cases += row.Cases
	}
	t.Logf("%d cases, %d unnoticed, %d too strict, %d with other causes", cases, len(report.Unnoticed), len(report.TooStrict), len(report.OtherCause))
	if path := os.Getenv("ANYKIND_APITEST_FINDINGS"); path != "" {
		text := "UNNOTICED\n" + Group(report.Unnoticed) + "\nTOO STRICT\n" + Group(report.TooStrict) + "\nOTHER CAUSE\n" + Group(report.OtherCause)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	assert.Empty(t, Group(report.Unnoticed))
	assert.Empty(t, Group(report.TooStrict))
}

// run draws up to count faults for each write, and plays them.
func run(t testing.TB, real, double Server, seed, count int) *Report {
	l := &lab{t: t, schemas: newSchemas(t), servers: [2]Server{real, double}}
	report := &Report{Rows: map[string]*Row{}}
	r := rand.New(rand.NewPCG(uint64(seed), 37)) //nolint:gosec // repeatable
	type job struct {
		probe *probe
		fault fault
	}
	var jobs []job
	only := os.Getenv("ANYKIND_APITEST_KIND")
	for _, s := range readSeeds(t) {
		if only != "" && !strings.HasPrefix(s.name(), only) {
			continue
		}
		for _, p := range l.prepare(s) {
			for _, f := range l.faults(r, p, count) {
				jobs = append(jobs, job{p, f})
			}
		}
	}
	for _, s := range l.servers[:1] {
		t.Cleanup(func() { deleteClusterScoped(t, l, s) })
	}
	start := time.Now()
	last := start
	played0 := 0
	fmt.Fprintln(os.Stderr, len(jobs), "jobs")
	r.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
	var mu sync.Mutex
	var running sync.WaitGroup
	queue := make(chan job)
	for range 16 {
		running.Go(func() {
			for j := range queue {
				if results, played := l.play(j.probe, j.fault); played {
					mu.Lock()
					report.add(j.probe, j.fault, results)
					if os.Getenv("ANYKIND_APITEST_FINDINGS") != "" && time.Since(last) > 5*time.Second {
						last = time.Now()
						fmt.Fprintln(os.Stderr, time.Since(start).Round(time.Second), played0, "of", len(jobs), j.probe.title(), j.fault.field(), results[0].text())
					}
					played0++
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
	slices.SortFunc(report.Unnoticed, func(a, b finding) int { return strings.Compare(a.String(), b.String()) })
	return report
}

func deleteClusterScoped(t testing.TB, l *lab, s Server) {
	for _, path := range l.created {
		s.Requests.Delete(t, path)
	}
}
