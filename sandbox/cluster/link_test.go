//go:build unix

package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/anykind/anykind/sandbox/internal/build"
)

func TestLink_ReplacesLinks(t *testing.T) {
	opts := &Options{CacheDir: t.TempDir(), Components: []Component{Kubectl}}
	complete, err := opts.Complete()
	if err != nil {
		t.Fatal(err)
	}
	cache, err := build.OpenCache(opts.CacheDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, component := range complete.Components {
		if err := os.WriteFile(cache.Path(complete.binary(component)), []byte(component), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	links := filepath.Join(t.TempDir(), "assets")
	for range 2 {
		if err := Link(t.Context(), opts, links); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(links)
	if err != nil || len(entries) != 3 {
		t.Fatalf("%v in the folder, error %v; want etcd, kube-apiserver and kubectl", entries, err)
	}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(links, entry.Name()))
		if err != nil || string(text) != entry.Name() {
			t.Errorf("%s is a link to a file with %q, error %v", entry.Name(), text, err)
		}
	}
}
