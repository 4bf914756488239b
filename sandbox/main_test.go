//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/sandbox/cluster"
	"github.com/anykind/anykind/sandbox/internal/build"
	"github.com/anykind/anykind/sandbox/internal/leftovers"
)

// mainEnv makes the test binary run the sandbox command.
const mainEnv = "SANDBOX_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		main()
	}
	os.Exit(leftovers.Run(m))
}

// sandboxCommand returns the sandbox command, not started.
func sandboxCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	// Without the sandbox that these tests may run in, and without the race detector's
	// delay at exit.
	cmd.Env = append(os.Environ(), mainEnv+"=1", clusterDirEnv+"=", "GORACE=atexit_sleep_ms=0")
	return cmd
}

type result struct {
	stdout, stderr string
	code           int
}

// runSandbox runs the sandbox command to its end.
func runSandbox(t *testing.T, args ...string) *result {
	t.Helper()
	return finish(t, sandboxCommand(t, args...))
}

func finish(t *testing.T, cmd *exec.Cmd) *result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout = &stdout
	cmd.Stderr = &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return &result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// mustRun is runSandbox, fails the test unless that succeeds, and returns standard output.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	r := runSandbox(t, args...)
	if r.code != 0 {
		t.Fatalf("sandbox %s: exit code %d\n%s", strings.Join(args, " "), r.code, r.stderr)
	}
	return r.stdout
}

// smallCluster is the flag with which most tests start a cluster.
const smallCluster = "--components=etcd,kube-apiserver"

// needSmallCluster skips the test if etcd, the API server or kubectl must be built first
// and ANYKIND_REQUIRE_SANDBOX is not 1. It sets a cache of the test's own with the real
// one's binaries, so that other sandboxes do not interfere.
func needSmallCluster(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real cluster: run without -short")
	}
	cache, err := build.OpenCache("")
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("ANYKIND_REQUIRE_SANDBOX") == "1" {
		opts := &cluster.Options{Components: []cluster.Component{cluster.Etcd, cluster.APIServer, cluster.Kubectl}, Progress: os.Stderr}
		if err := cluster.Build(t.Context(), opts); err != nil {
			t.Fatal(err)
		}
	}
	kubernetes := func(name string) build.Binary { return build.Kubernetes(name, build.KubernetesVersion) }
	for _, b := range []build.Binary{build.Etcd(), kubernetes("kube-apiserver"), kubernetes("kubectl")} {
		if !cache.Has(b) {
			t.Skipf("needs %s, which is not built yet: run `make test`", b.Name)
		}
	}
	own := t.TempDir()
	if err := os.Symlink(filepath.Join(cache.Dir, "bin"), filepath.Join(own, "bin")); err != nil {
		t.Fatal(err)
	}
	t.Setenv(build.CacheEnv, own)
}
