package hosttest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const mainModule = "github.com/anykind/anykind/"

// exclusions reads exclusions.txt: a package and a test, and the reason why it cannot pass on apitest.
func exclusions(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("exclusions.txt")
	require.NoError(t, err)
	reasons := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		test, reason, found := strings.Cut(line, ": ")
		require.True(t, found, "a line is PACKAGE TEST: REASON: %s", line)
		reasons[test] = reason
	}
	return reasons
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// clusterTests returns a package's tests in files with the sandbox.
func clusterTests(t *testing.T, folder string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if !strings.Contains(filepath.Base(file), "cluster") {
			continue
		}
		for _, match := range testFunction.FindAllSubmatch(text, -1) {
			if name := string(match[1]); name != "TestMain" {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// TestMainModule_ClusterTestsPass runs the cluster tests of the library, as they are, on apitest, without those of exclusions.txt.
func TestMainModule_ClusterTestsPass(t *testing.T) {
	reasons := exclusions(t)
	packages := []string{"applyset", "cache", "controller/leaderelection", "discovery", "dynamic", "restmapper", "transport", "transport/rbac"}
	for test := range reasons {
		pkg, name, _ := strings.Cut(test, " ")
		assert.Contains(t, packages, pkg, "exclusions.txt names a package whose tests are not run")
		assert.Contains(t, clusterTests(t, testFolder(pkg)), name, "exclusions.txt names a test of %s that does not exist", pkg)
	}
	for _, pkg := range packages {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel() // the tests wait more than they compute, and each package has a server of its own
			testPackage(t, pkg, reasons)
		})
	}
}

func testFolder(pkg string) string { return filepath.Join("..", "..", filepath.FromSlash(pkg)) }

// testPackage runs the cluster tests of a package but the excluded ones.
func testPackage(t *testing.T, pkg string, reasons map[string]string) {
	t.Helper()
	folder := sandbox(t)
	tests := clusterTests(t, testFolder(pkg))
	require.NotEmpty(t, tests)
	var chosen []string
	for _, name := range tests {
		if reason, isExcluded := reasons[pkg+" "+name]; isExcluded {
			t.Logf("excluded: %s: %s", name, reason)
			continue
		}
		chosen = append(chosen, name)
	}
	results, output := runTests(t, folder, pkg, chosen)
	passed := 0
	for _, name := range chosen {
		if results[name] != "pass" { // a busy machine may exceed a deadline of the test: it runs once more, alone
			t.Logf("%s is run again: %s", name, output[name])
			again, text := runTests(t, folder, pkg, []string{name})
			results[name] = again[name]
			output[name] = text[name]
		}
		if assert.Equal(t, "pass", results[name], "%s\n%s", name, output[name]) {
			passed++
		}
	}
	t.Logf("%d cluster tests pass on apitest, %d are excluded", passed, len(tests)-len(chosen))
}

// runTests runs tests of a package of the main module and returns the last action of each, and its output.
func runTests(t *testing.T, folder, pkg string, names []string) (results, output map[string]string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "test", "-json", "-count=1", "-timeout", "5m", "-run", "^("+strings.Join(names, "|")+")$", mainModule+pkg)
	command.Dir = filepath.Join("..", "..")
	command.Env = append(os.Environ(), "ANYKIND_SANDBOX="+folder, "ANYKIND_REQUIRE_SANDBOX=0", "ANYKIND_CHAOS_ROUNDS=2")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	results = map[string]string{}
	output = map[string]string{}
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var event struct{ Action, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue
		}
		name, _, isSub := strings.Cut(event.Test, "/")
		output[name] += event.Output
		if !isSub && slices.Contains([]string{"pass", "fail", "skip"}, event.Action) {
			results[name] = event.Action
		}
	}
	_ = command.Wait() // its results say more
	if len(results) == 0 {
		t.Errorf("%s: no test ran: %s %s", pkg, stderr.String(), output[""])
	}
	return results, output
}
