package probe

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/apitest/internal/builtin"
)

// TestCases_NoRejectionUnnoticed plays the cases of upstream's validation tests on both servers. On a server of RulesVersion the
// outcomes are those of cases.txt. On a server of another version the differences are those of differences.txt. Environment variable
// ANYKIND_APITEST_RECORD is a path to write the actual lines of either file to.
func TestCases_NoRejectionUnnoticed(t *testing.T) {
	sandbox, double := bothServers(t)
	version := sandbox.minor(t)
	l := newLab(t, sandbox, double)
	cases := readCases(t)
	probes := l.prepareCases(cases)
	lines := strings.Split(casesText, "\n")
	var differences []string
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
		mu.Lock()
		defer mu.Unlock()
		want := results[0]
		if !want.accepted() {
			rejected++
		}
		lines[c.line] = c.changes + outcomeOf + want.recorded()
		verdict := c.compare(want, results[1])
		switch {
		case version == builtin.RulesVersion && verdict != "":
			t.Errorf("%s: %s: %s\n\treal server: %s\n\tapitest: %s", verdict, c.write, c.changes, want.text(), results[1].text())
		case version == builtin.RulesVersion:
			assert.Equal(t, c.outcome, want.recorded(), "%s: %s (the recorded outcome in cases.txt)", c.write, c.changes)
		case verdict != "" || c.outcome != want.recorded():
			differences = append(differences, strings.TrimSuffix(fmt.Sprintf("%s: %s: %s; %s", version, c.write, lines[c.line], verdict), "; "))
		}
	})
	t.Logf("%d cases, %d rejected by the real server", len(cases), rejected)
	record := os.Getenv("ANYKIND_APITEST_RECORD")
	if version == builtin.RulesVersion {
		writeLines(t, record, lines)
		return
	}
	slices.Sort(differences)
	writeLines(t, record, differences)
	known := slices.DeleteFunc(differencesOf(version), func(line string) bool { return strings.HasPrefix(line, version+": probe: ") })
	if len(known) == 0 {
		t.Skipf("differences.txt has no differences of Kubernetes %s", version)
	}
	assert.Equal(t, known, differences)
}

// compare returns the violation of the rule of this package, or "".
func (c upstreamCase) compare(want, got outcome) string {
	isWarned := slices.ContainsFunc(c.faults, func(f fault) bool { return isWarned(f, got.warnings) })
	switch {
	case want.code == http.StatusConflict: // with another writer of the server
	case !want.accepted() && got.accepted() && !isWarned:
		return "not rejected and no warning"
	case want.accepted() && !got.accepted():
		return "rejected by apitest"
	}
	return ""
}

func differencesOf(version string) (known []string) {
	for line := range strings.SplitSeq(differencesText, "\n") {
		if strings.HasPrefix(line, version+": ") {
			known = append(known, line)
		}
	}
	return known
}

func writeLines(t *testing.T, path string, lines []string) {
	t.Helper()
	if path != "" {
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
	}
}

// minor returns the minor version of a server, such as "1.36".
func (s Server) minor(t *testing.T) string {
	t.Helper()
	_, version := s.send(t, http.MethodGet, "/version", nil, nil)
	return fmt.Sprintf("%v.%v", version["major"], version["minor"])
}
