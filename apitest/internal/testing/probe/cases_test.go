package probe

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCases_NoRejectionUnnoticed plays the cases of upstream's validation tests on both servers. ANYKIND_APITEST_RECORD is the path of
// cases.txt, to replace the outcomes.
func TestCases_NoRejectionUnnoticed(t *testing.T) {
	sandbox, double := bothServers(t)
	l := newLab(t, sandbox, double)
	cases := readCases(t)
	probes := l.prepareCases(cases)
	lines := strings.Split(casesText, "\n")
	var mu sync.Mutex
	rejected := 0
	concurrently(cases, func(c upstreamCase) {
		p := probes[c.write]
		if !assert.NotNil(t, p, c.write) {
			return
		}
		results, played := l.play(p, c.faults...)
		if !assert.True(t, played, "%s: %s changes nothing", c.write, c.changes) {
			return
		}
		want := results[0]
		got := results[1]
		mu.Lock()
		defer mu.Unlock()
		lines[c.line] = c.changes + outcomeOf + want.recorded()
		isWarned := slices.ContainsFunc(c.faults, func(f fault) bool { return isWarned(f, got.warnings) })
		if !want.accepted() {
			rejected++
		}
		switch {
		case want.code == http.StatusConflict: // with another writer of the server
		case !want.accepted() && got.accepted() && !isWarned:
			t.Errorf("not rejected and no warning: %s: %s\n\treal server: %s", c.write, c.changes, want.text())
		case want.accepted() && !got.accepted():
			t.Errorf("rejected: %s: %s\n\tapitest: %s", c.write, c.changes, got.text())
		}
		if os.Getenv("ANYKIND_APITEST_RECORD") == "" {
			assert.Equal(t, c.outcome, want.recorded(), "%s: %s (the recorded outcome in cases.txt)", c.write, c.changes)
		}
	})
	t.Logf("%d cases, %d rejected by the real server", len(cases), rejected)
	if path := os.Getenv("ANYKIND_APITEST_RECORD"); path != "" {
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
	}
}
