// Package cluster provides the sandbox's real API server to tests and controls its components. Start the sandbox around the
// tests with `make test`, or:
//
//	go run -C sandbox . exec -- go test ./...
//
// Without a sandbox, a test that needs it is skipped, or fails if ANYKIND_REQUIRE_SANDBOX=1. The user's own KUBECONFIG is never
// read.
package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

const (
	dirEnv     = "ANYKIND_SANDBOX"         // the sandbox's folder, set by `sandbox exec`
	requireEnv = "ANYKIND_REQUIRE_SANDBOX" // 1: a missing sandbox fails the test
)

// Kubeconfig returns the path of the sandbox's kubeconfig. Its contexts are "admin" (client certificate; the current context),
// "token" (administrator with a bearer token) and "limited" (permission to get, list and watch configmaps in namespace default
// only).
func Kubeconfig(t testing.TB) string {
	t.Helper()
	return filepath.Join(dir(t), "kubeconfig")
}

// Kubeconfigs returns the path of a kubeconfig for each API server of the sandbox. The first is Kubeconfig's.
func Kubeconfigs(t testing.TB) []string {
	t.Helper()
	return status(t).Kubeconfigs
}

// Kubectl returns the path of kubectl in the sandbox's version. It is the only file in its folder.
func Kubectl(t testing.TB) string {
	t.Helper()
	path := status(t).Kubectl
	if path == "" {
		Skipf(t, "needs kubectl, which this sandbox was started without (--components)")
	}
	return path
}

// KubectlOnPath puts the sandbox's kubectl first on PATH until the test ends.
func KubectlOnPath(t testing.TB) {
	t.Helper()
	t.Setenv("PATH", filepath.Dir(Kubectl(t))+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

func dir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv(dirEnv)
	if dir == "" {
		Skipf(t, "needs a real API server (%s is not set): run `make test`", dirEnv)
	}
	return dir
}

// Skipf skips the test, or fails it if ANYKIND_REQUIRE_SANDBOX=1.
func Skipf(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv(requireEnv) == "1" {
		t.Fatalf(requireEnv+"=1, but the test "+format, args...)
	}
	t.Skipf(format, args...)
}
