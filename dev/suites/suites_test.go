package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSuites_PassInCI runs the part of the upstream suites that fits in CI; make compat runs all.
func TestSuites_PassInCI(t *testing.T) {
	if os.Getenv("ANYKIND_REQUIRE_SANDBOX") != "1" {
		t.Skip("compiles client-go and controller-runtime: run make test MODULES=dev/suites, or make compat")
	}
	exclusions, err := parseExclusions()
	require.NoError(t, err)
	r, err := newRunner(t.Context(), t.Logf)
	require.NoError(t, err)
	chosen, err := choose(true, nil)
	require.NoError(t, err)
	require.NotEmpty(t, chosen)
	for _, s := range chosen {
		t.Run(s.name, func(t *testing.T) {
			report, err := r.run(t.Context(), s)
			require.NoError(t, err)
			v := summarize(report, exclusions)
			t.Logf("%s in %s", v, report.took)
			for _, failure := range v.failures {
				t.Error(failure)
			}
		})
	}
}

func TestSuites_NamesAreUnique(t *testing.T) {
	versions, err := parseVersions(versionList)
	require.NoError(t, err)
	exclusions, err := parseExclusions()
	require.NoError(t, err)
	names := map[string]bool{}
	for _, s := range suites() {
		assert.False(t, names[s.name], s.name)
		names[s.name] = true
		assert.Contains(t, versions, s.upstream.module)
		assert.NotEmpty(t, s.with, s.name)
		assert.Positive(t, s.timeout, s.name)
	}
	for _, e := range exclusions {
		assert.Contains(t, names, e.suite)
	}
}

// The programs take minutes to compile: CI leaves them out.
func TestProgramSuites_RunWithAndWithout(t *testing.T) {
	all := map[string]*suite{}
	for _, s := range programSuites() {
		assert.False(t, s.ci, s.name)
		all[s.name] = s
	}
	for name, s := range all {
		base, isAdapted := strings.CutSuffix(name, " with adapters")
		if !isAdapted {
			continue
		}
		baseline := all[base+" without anykind"]
		require.NotNil(t, baseline, name)
		assert.Equal(t, s.pkg, baseline.pkg)
		assert.Equal(t, s.skip, baseline.skip)
		assert.Empty(t, s.env)
		assert.Equal(t, []string{withoutAnykind}, baseline.env)
	}
}

func TestChoose_Names(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"client-go"}, "^client-go/"},
		{[]string{"controller-runtime/cache"}, "^controller-runtime/cache$"},
		{[]string{"client-go/dynamic", "client-go"}, "^client-go/"},
		{[]string{"client-go", "client-go/dynamic"}, "^client-go/"},
	} {
		chosen, err := choose(false, c.names)
		require.NoError(t, err)
		require.NotEmpty(t, chosen)
		seen := map[string]bool{}
		for _, s := range chosen {
			assert.Regexp(t, c.want, s.name)
			assert.False(t, seen[s.name], "%s is chosen twice", s.name)
			seen[s.name] = true
		}
	}
	_, err := choose(false, []string{"client"})
	assert.EqualError(t, err, `unknown suite "client"`)
}
