package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(exitCode int) {
		if folder, err := temporaryFolder(); err == nil {
			_ = os.RemoveAll(folder)
		}
		os.Exit(exitCode)
	}))
}

// temporaryFolder returns a folder that TestMain removes.
var temporaryFolder = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "anykind-examples-") })

// buildExamples returns a folder with the programs of this module's examples. They are built once.
func buildExamples(t *testing.T) (folder string) {
	t.Helper()
	folder, err := temporaryFolder()
	require.NoError(t, err)
	if entries, err := os.ReadDir(folder); err == nil && len(entries) == 0 {
		build(t, folder, ".", "./...")
	}
	return folder
}

// build builds programs of a module's folder.
func build(t *testing.T, into, folder string, packages ...string) {
	t.Helper()
	args := append([]string{"build", "-C", folder, "-ldflags=-s -w", "-o", into + string(filepath.Separator)}, packages...)
	text, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	require.NoError(t, err, "%s", text)
}

// TestExamples_ExplainTheirArguments builds the programs and asks each for help, and with arguments that it does not take.
// quickstart is not one of them: it is shown whole, and takes none.
func TestExamples_ExplainTheirArguments(t *testing.T) {
	folder := buildExamples(t)
	programs := map[string][]string{
		"api-resources": {"-x", "pods"}, "autodetect": {"-x", "pods"}, "contexts": {"-x", ""}, "deployment-notifier": {"-x", "pods"}, "drain": {"-x"}, "explain": {"-x"},
		"generic": {"-x", "pods"}, "gitops": {"-x"}, "informer": {"-x", "pods"}, "inventory": {"-x", "pods"}, "operator": {"-x", "pods"}, "paths": {"-x", "pods"}, "pod": {"-x", "pods"},
		"reflector": {"-x"}, "sharded": {"-x", "pods"}, "tour": {"-x", "pods"},
	}
	run := func(name, argument string) (code int, output string) {
		program := exec.CommandContext(t.Context(), filepath.Join(folder, name), argument)
		program.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(folder, "none"))
		text, err := program.CombinedOutput()
		var exit *exec.ExitError
		if err != nil {
			require.ErrorAs(t, err, &exit)
		}
		return program.ProcessState.ExitCode(), string(text)
	}
	for name, wrong := range programs {
		t.Run(name, func(t *testing.T) {
			code, text := run(name, "-h")
			assert.Zero(t, code, text)
			assert.Regexp(t, "(?i)^usage", text)
			for _, argument := range wrong {
				code, text := run(name, argument)
				assert.NotZero(t, code, argument)
				assert.Regexp(t, "(?i)usage", text, argument)
			}
		})
	}
}
