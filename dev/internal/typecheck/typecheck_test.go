package typecheck

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// outside is the environment of a module outside of the workspace.
var outside = []string{"GOWORK=off", "GOFLAGS=-mod=mod"}

// module writes a module that requires a second module, and returns its folder.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	all := map[string]string{
		"go.mod": "module example.org/own\n\ngo 1.26.0\n\nrequire example.org/required v1.0.0\n\nreplace example.org/required => ./required\n",
		"own.go": "package own\n\nimport \"example.org/required\"\n\nvar Greeting = required.Greeting()\n",

		"required/go.mod":      "module example.org/required\n\ngo 1.26.0\n",
		"required/required.go": "package required\n\nimport \"os\"\n\nfunc Greeting() string { return os.Getenv(\"GREETING\") }\n",
	}
	maps.Copy(all, files)
	for name, text := range all {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

func TestCheck_ErrorsOfPlatform(t *testing.T) {
	windows := Platform{"windows", "amd64"}
	linux := Platform{"linux", "386"}
	wrongType := map[string]string{"own_windows.go": "package own\n\nvar count int = Greeting\n"}
	systemCall := map[string]string{"stop.go": "package own\n\nimport \"syscall\"\n\nvar Stop = syscall.SIGSTOP\n"}
	large := map[string]string{"size.go": "package own\n\nconst Large int = 1 << 40\n"}
	for name, c := range map[string]struct {
		files    map[string]string
		platform Platform
		want     string // part of the error; empty means no error
	}{
		"no error":                    {nil, windows, ""},
		"type":                        {wrongType, windows, "own_windows.go:3:17: cannot use Greeting"},
		"file of a different system":  {wrongType, linux, ""},
		"system call":                 {systemCall, linux, ""},
		"system call that is missing": {systemCall, windows, "stop.go:5:20: undefined: syscall.SIGSTOP"},
		"size":                        {large, windows, ""},
		"size that is too large":      {large, linux, "size.go:3:19: cannot use 1 << 40"},
		"body in a dependency": {
			map[string]string{"required/stop.go": "package required\n\nfunc Stop() { return 1 }\n"}, linux, "stop.go:3:22: too many return values",
		},
		"syntax":        {map[string]string{"stop.go": "package own\n\nfunc Stop() {\n"}, linux, "stop.go:3:15"},
		"unused import": {map[string]string{"stop.go": "package own\n\nimport \"os\"\n"}, linux, `stop.go:3:8: "os" imported and not used`},
		"missing package": {
			map[string]string{"stop.go": "package own\n\nimport _ \"example.org/required/none\"\n"}, linux, "example.org/required/none",
		},
		"version of Go": {map[string]string{
			"required/go.mod": "module example.org/required\n\ngo 1.17\n",
			"required/set.go": "package required\n\ntype Set[K comparable] map[K]bool\n",
		}, linux, "set.go:3:10"},
	} {
		t.Run(name, func(t *testing.T) {
			packages, err := New(c.platform).Check(t.Context(), module(t, c.files), outside, "./...")
			if c.want == "" {
				require.NoError(t, err)
				assert.Greater(t, packages, 20, "the standard library is checked, too")
				return
			}
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestCheck_ErrorsOfAllPackages(t *testing.T) {
	const wrong = "func Stop() { return 1 }\n"
	dir := module(t, map[string]string{"stop.go": "package own\n\n" + wrong, "required/stop.go": "package required\n\n" + wrong})
	_, err := New(Platform{"linux", "amd64"}).Check(t.Context(), dir, outside, "./...")
	require.Error(t, err)
	assert.Contains(t, err.Error(), filepath.Join(dir, "stop.go"))
	assert.Contains(t, err.Error(), filepath.Join(dir, "required", "stop.go"))
}

func TestChecker_ChecksPackagesOnce(t *testing.T) {
	dir := module(t, nil)
	c := New(Platform{"linux", "amd64"})
	first := checkModule(t, c, dir)
	assert.Greater(t, first, 20)
	assert.Equal(t, first, checkModule(t, c, dir), "nothing has changed")

	// Different files, and the importer of a package with different files, are different packages.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "required", "more.go"), []byte("package required\n"), 0o600))
	assert.Equal(t, first+2, checkModule(t, c, dir))

	second := module(t, map[string]string{"stop.go": "package own\n\nfunc Stop() { return 1 }\n"})
	_, err := c.Check(t.Context(), second, outside, "./...")
	require.ErrorContains(t, err, filepath.Join(second, "stop.go"))
	_, err = c.Check(t.Context(), second, outside, "./...")
	require.ErrorContains(t, err, filepath.Join(second, "stop.go"), "an error is returned again")
	assert.Len(t, c.known, first+4, "the standard library is known")
}

// checkModule checks a module and returns the number of packages known afterwards.
func checkModule(t *testing.T, c *Checker, dir string) int {
	t.Helper()
	_, err := c.Check(t.Context(), dir, outside, "./...")
	require.NoError(t, err)
	return len(c.known)
}
