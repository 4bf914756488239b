//go:build unix

package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckKubernetesVersion(t *testing.T) {
	for version, good := range map[string]bool{
		"v1.36.3": true, "v1.34.4": true, "v1.37.0-rc.1": true,
		"": false, "1.36.3": false, "v1.36": false, "v9.9.9": false, "latest": false, "v1.36.3 -x": false,
	} {
		if err := CheckKubernetesVersion(version); (err == nil) != good {
			t.Errorf("%q: %v", version, err)
		}
	}
}

func TestGeneratedModule_ReplacesStagingModules(t *testing.T) {
	source, err := parseSourceModule([]byte(`{"Go": "1.25.0", "Replace": [
		{"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
		{"Old": {"Path": "example.org/fork"}, "New": {"Path": "example.org/other", "Version": "v1.0.0"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	got := generatedModule(Kubernetes("kube-apiserver", "v1.37.0-rc.1"), source)
	want := "module build.local/sandbox\n\ngo 1.25.0\n\nrequire k8s.io/kubernetes v1.37.0-rc.1\n\nreplace k8s.io/api => k8s.io/api v0.37.0-rc.1\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := generatedModule(Etcd(), source); strings.Contains(got, "replace") {
		t.Errorf("etcd's module has replacements:\n%s", got)
	}
}

func TestBinary_LinkFlagsHaveVersion(t *testing.T) {
	flags := Kubernetes("kube-apiserver", "v1.34.4").linkFlags()
	for _, want := range []string{"version.gitVersion=v1.34.4", "version.gitMajor=1", "version.gitMinor=34"} {
		if !strings.Contains(flags, want) {
			t.Errorf("%s is not in %s", want, flags)
		}
	}
}

func TestPatchedCopy(t *testing.T) {
	module := t.TempDir()
	file := filepath.Join(module, "sub", "x.go")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("a\nb\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	dir, err := patchedCopy([]patch{{"sub/x.go", "a\n", "A\n"}, {"sub/x.go", "b\n", "B\n"}}, module, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "sub", "x.go")); string(text) != "A\nB\n" {
		t.Errorf("the copy is %q", text)
	}
	if text, _ := os.ReadFile(file); string(text) != "a\nb\n" {
		t.Errorf("the original is %q", text)
	}
	if _, err := patchedCopy([]patch{{"sub/x.go", "c\n", ""}}, module, t.TempDir()); err == nil {
		t.Error("a patch for lines that are not there was applied")
	}
}

func TestOpenCache_Folder(t *testing.T) {
	t.Setenv(CacheEnv, filepath.Join(t.TempDir(), "env"))
	t.Setenv("XDG_CACHE_HOME", filepath.Join(t.TempDir(), "xdg"))
	chosen := filepath.Join(t.TempDir(), "chosen")
	for dir, want := range map[string]string{chosen: chosen, "": os.Getenv(CacheEnv)} {
		cache, err := OpenCache(dir)
		if err != nil {
			t.Fatal(err)
		}
		if cache.Dir != want {
			t.Errorf("OpenCache(%q) is in %s, want %s", dir, cache.Dir, want)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCache(filepath.Join(file, "cache")); err == nil || !strings.Contains(err.Error(), CacheEnv) {
		t.Errorf("a cache that cannot be: %v", err)
	}
}

func TestCache_HasOnlyExecutables(t *testing.T) {
	cache, err := OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cache.Path(Etcd()), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if cache.Has(Etcd()) {
		t.Error("a file that cannot be run counts as built")
	}
	if cache.Path(Kwok()) == strings.Replace(cache.Path(Kwok()), "+patch", "", 1) {
		t.Error("a patched binary has the name of an unpatched one")
	}
}
