//go:build unix

package build

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/sandbox/internal/progress"
)

// fakeGo stands in for the go command: it knows one module, takes its time to
// build and then writes a file.
const fakeGo = `#!/bin/sh
echo "$*" >>"$FAKE_GO_CALLS"
case "$1 $2" in
"mod download")
	case $4 in *v9.*) echo '{"Error": "'"$4"': no such version"}'; exit 1 ;; esac
	echo '{"Dir": "'"$FAKE_GO_MODULE"'", "GoMod": "'"$FAKE_GO_MODULE"'/go.mod"}' ;;
"mod edit")
	echo '{"Go": "1.25.0", "Replace": [{"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}}]}' ;;
"build "*)
	echo "work in progress" >"$GOTMPDIR/half"
	touch "$FAKE_GO_CALLS.building"
	[ -z "$FAKE_GO_FAIL" ] || { echo "does not compile" >&2; exit 1; }
	while [ -e "$FAKE_GO_CALLS.hold" ]; do sleep 0.05; done
	while [ "$1" != -o ]; do shift; done
	echo '#!/bin/sh' >"$2"; chmod +x "$2" ;;
esac
`

// withFakeGo puts fakeGo on PATH and returns the file that records its calls.
func withFakeGo(t *testing.T) (calls string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(fakeGo), 0o755); err != nil {
		t.Fatal(err)
	}
	calls = filepath.Join(dir, "calls")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("FAKE_GO_CALLS", calls)
	t.Setenv("FAKE_GO_MODULE", dir)
	return calls
}

func openCache(t *testing.T) *Cache {
	t.Helper()
	cache, err := OpenCache(filepath.Join(t.TempDir(), "cache"))
	if err != nil {
		t.Fatal(err)
	}
	return cache
}

func builds(t *testing.T, calls string) int {
	t.Helper()
	text, _ := os.ReadFile(calls)
	return strings.Count("\n"+string(text), "\nbuild ")
}

// checkNothingHalfBuilt fails the test unless the cache holds just the binaries.
func checkNothingHalfBuilt(t *testing.T, cache *Cache, binaries ...Binary) {
	t.Helper()
	left, _ := filepath.Glob(filepath.Join(cache.Dir, scratchPattern+"*"))
	if len(left) > 0 {
		t.Errorf("left behind: %s", left)
	}
	inBin, _ := filepath.Glob(filepath.Join(cache.Dir, "bin", "*"))
	if len(inBin) != len(binaries) {
		t.Errorf("in bin: %s, want %d files", inBin, len(binaries))
	}
	for _, b := range binaries {
		if !cache.Has(b) {
			t.Errorf("%s is not built", b.Name)
		}
	}
}

func TestCache_BuildsOnceAndReports(t *testing.T) {
	calls := withFakeGo(t)
	cache := openCache(t)
	server := Kubernetes("kube-apiserver", "v1.34.4")
	var out bytes.Buffer
	for range 2 {
		if err := cache.Build(t.Context(), progress.New(&out), Etcd(), server); err != nil {
			t.Fatal(err)
		}
	}
	if n := builds(t, calls); n != 2 {
		t.Errorf("go build ran %d times for two binaries", n)
	}
	checkNothingHalfBuilt(t, cache, Etcd(), server)
	if cache.Has(Kubernetes("kube-apiserver", "v1.36.3")) {
		t.Error("a binary of another version counts as built")
	}
	if said := out.String(); !strings.Contains(said, "building kube-apiserver v1.34.4 (about 6 minutes") {
		t.Errorf("it said %q", said)
	}
	goMod, err := os.ReadFile(filepath.Join(cache.Dir, "module", "kubernetes-v1.34.4", "go.mod"))
	if err != nil || !strings.Contains(string(goMod), "replace k8s.io/api => k8s.io/api v0.34.4\n") {
		t.Errorf("go.mod: %v\n%s", err, goMod)
	}
}

func TestCache_BuildAfterInterruption(t *testing.T) {
	calls := withFakeGo(t)
	cache := openCache(t)
	hold(t, calls)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		awaitFile(calls + ".building")
		cancel()
	}()
	if err := cache.Build(ctx, nil, Etcd()); !errors.Is(err, context.Canceled) {
		t.Fatalf("the interrupted build: %v", err)
	}
	checkNothingHalfBuilt(t, cache)
	unhold(t, calls)
	if err := cache.Build(t.Context(), nil, Etcd()); err != nil {
		t.Fatal(err)
	}
	checkNothingHalfBuilt(t, cache, Etcd())
}

func TestCache_BuildRemovesLeftovers(t *testing.T) {
	withFakeGo(t)
	cache := openCache(t)
	if err := os.MkdirAll(filepath.Join(cache.Dir, scratchPattern+"123", "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := cache.Build(t.Context(), nil, Etcd()); err != nil {
		t.Fatal(err)
	}
	checkNothingHalfBuilt(t, cache, Etcd())
}

func TestCache_ConcurrentBuilds(t *testing.T) {
	calls := withFakeGo(t)
	cache := openCache(t)
	hold(t, calls)
	var second bytes.Buffer
	var both sync.WaitGroup
	both.Go(func() {
		if err := cache.Build(t.Context(), nil, Etcd()); err != nil {
			t.Error(err)
		}
	})
	awaitFile(calls + ".building")
	both.Go(func() {
		if err := cache.Build(t.Context(), progress.New(&second), Etcd()); err != nil {
			t.Error(err)
		}
	})
	time.Sleep(300 * time.Millisecond) // long enough for a second build to begin, if it did not wait
	unhold(t, calls)
	both.Wait()
	if n := builds(t, calls); n != 1 {
		t.Errorf("go build ran %d times for one binary", n)
	}
	if !strings.Contains(second.String(), "another process is building") {
		t.Errorf("the second said %q", second.String())
	}
}

func TestCache_BuildErrors(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(t *testing.T)
		binary  Binary
		want    []string
	}{
		"does not compile": {
			func(t *testing.T) { t.Setenv("FAKE_GO_FAIL", "1") }, Etcd(),
			[]string{"build etcd " + EtcdVersion, "does not compile"},
		},
		"no such version": {
			func(*testing.T) {}, Kubernetes("kube-scheduler", "v9.9.9"),
			[]string{"build kube-scheduler v9.9.9", "k8s.io/kubernetes@v9.9.9: no such version", "GOPROXY"},
		},
		"no go command": {
			func(t *testing.T) { t.Setenv("PATH", t.TempDir()) }, Etcd(),
			[]string{`"go": executable file not found`, "install Go"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			withFakeGo(t)
			c.prepare(t)
			cache := openCache(t)
			err := cache.Build(t.Context(), nil, c.binary)
			if err == nil {
				t.Fatal("it succeeded")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
			checkNothingHalfBuilt(t, cache)
		})
	}
}

func TestGoEnvironment_OverridesUserSettings(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=vendor")
	t.Setenv("GOWORK", "/some/go.work")
	env := strings.Join(goEnvironment("/dir", "/scratch"), "\n")
	for _, last := range []string{"GOFLAGS=-mod=mod", "GOWORK=off", "GOTMPDIR=/scratch", "CGO_ENABLED=0"} {
		name, _, _ := strings.Cut(last, "=")
		if i := strings.LastIndex(env, name+"="); i < 0 || !strings.HasPrefix(env[i:], last) {
			t.Errorf("%s is not what counts in:\n%s", last, env)
		}
	}
}

func hold(t *testing.T, calls string) {
	t.Helper()
	if err := os.WriteFile(calls+".hold", nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func unhold(t *testing.T, calls string) {
	t.Helper()
	if err := os.Remove(calls + ".hold"); err != nil {
		t.Fatal(err)
	}
}

func awaitFile(path string) {
	for range 500 {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
