package simulate

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/simulate/internal/testing/broken"
	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/internal/testing/race"
	"github.com/anykind/anykind/unstructured"
)

const (
	stormProcesses = 100
	stormCaches    = 2
)

// stormServer admits limit lists and watches with initial events a second, and rejects the rest with 429.
func stormServer(limit int) apitest.Options {
	var second time.Time
	inSecond := 0
	opts := apitest.Options{BookmarkInterval: time.Hour, Faults: []apitest.Fault{{
		Match: func(r apitest.Request) bool { // one at a time
			if r.Resource != "configmaps" && r.Resource != "secrets" || r.Verb != "list" && !isInitialWatch(r) {
				return false
			}
			if now := r.Time.Truncate(time.Second); !now.Equal(second) {
				second = now
				inSecond = 0
			}
			inSecond++
			return inSecond > limit
		},
		Err: apitest.TooManyRequests(time.Second),
	}}}
	for n := range 20 {
		for _, kind := range []string{"ConfigMap", "Secret"} {
			opts.Objects = append(opts.Objects, &unstructured.Object{Object: map[string]any{
				"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": fmt.Sprint("o", n), "namespace": "default"},
			}})
		}
	}
	return opts
}

func isInitialWatch(r apitest.Request) bool {
	return r.Verb == "watch" && strings.Contains(r.Query, "sendInitialEvents=true")
}

// runCaches runs two caches.
func runCaches(ctx context.Context, p *Process) error {
	var caches []*cache.Cache[unstructured.Object]
	for _, name := range []string{"configmaps", "secrets"} {
		r, err := p.Client.Resource(ctx, name)
		if err != nil {
			return err
		}
		caches = append(caches, cache.New(r.Namespace("default"), (*cache.Options[unstructured.Object])(nil)))
	}
	return broken.RunWith(ctx, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}, caches...)
}

// TestDay_NoRelistStorm restarts 100 processes at once, and the server with its history compacted. Each cache must list once, and its
// requests must be spread over seconds.
func TestDay_NoRelistStorm(t *testing.T) {
	if race.Enabled {
		t.Skip("thousands of goroutines are slow with the race detector")
	}
	const all = stormProcesses * stormCaches
	restart := func(down time.Duration) func(d *day) {
		return func(d *day) {
			assert.NoError(t, d.run.server.Create(t.Context(), serviceAccount())) // the resourceVersions of the watches expire
			d.run.server.Compact()
			d.restart(down)
		}
	}
	for name, tc := range map[string]struct {
		do       func(d *day)
		admitted int // lists a second, as by API Priority and Fairness
		atOnce   int // the most lists a second
		lists    int // the most lists in all
	}{
		// Nothing spreads the starts of programs. Rejected lists are sent again after a second.
		"processes":   {func(d *day) { _, kill := d.crashAll(""); kill() }, 50, all, 3 * all},
		"server":      {restart(0), all, all * 2 / 3, all},
		"server away": {restart(20 * time.Second), all, all * 2 / 3, all},
	} {
		t.Run(name, func(t *testing.T) {
			d := &day{options: DayOptions{Duration: 2 * time.Hour}, tokenFile: filepath.Join(t.TempDir(), "token"), plan: func(d *day) []operation {
				return []operation{{time.Hour + 10*time.Minute, name, func() { tc.do(d) }}}
			}}
			s := &Scenario{Server: stormServer(tc.admitted), Processes: stormProcesses, Run: runCaches}
			res := runDay(t, s, &choices{seed: 1, rarity: 1 << 40}, d, nil, false)
			if res.failure != nil {
				t.Fatal(res.failure.err, res.trace)
			}
			t.Log("\n" + d.table())
			require.Len(t, d.figures, 2)
			storm := d.figures[1]
			assert.Equal(t, all, storm.watches)
			assert.GreaterOrEqual(t, storm.lists, all)
			assert.LessOrEqual(t, storm.lists, tc.lists)
			assert.LessOrEqual(t, storm.atOnce, tc.atOnce)
			assert.LessOrEqual(t, storm.perSecond, 8*stormProcesses)
		})
	}
}

func serviceAccount() *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "later", "namespace": "default"},
	}}
}
