// Package corpus gives tests the CustomResourceDefinitions and objects of public projects that the program in the
// repository's folder corpus collects. `make test` collects them and sets ANYKIND_CORPUS; by hand:
//
//	ANYKIND_CORPUS=$(go run -C corpus .) go test ./...
//
// A test that asks for the corpus without one is skipped, saying so, or fails if ANYKIND_REQUIRE_SANDBOX=1.
package corpus

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

const (
	dirEnv     = "ANYKIND_CORPUS"          // the folder that the program printed
	requireEnv = "ANYKIND_REQUIRE_SANDBOX" // 1: a missing corpus fails the test
)

// File is one object of the corpus. Of a CustomResourceDefinition, Group and Kind are those that it defines.
type File struct {
	Name   string
	Group  string
	Kind   string
	Source string // module@version/path, or "synthetic"
	File   string // relative to the corpus
	JSON   []byte `json:"-"`
}

type index struct {
	CRDs      []File `json:"crds"`
	Synthetic []File `json:"synthetic"`
	Objects   []File `json:"objects"`
}

// Definitions returns count CustomResourceDefinitions of projects, spread over the corpus, and fails the test if it has
// fewer. The same count gives the same definitions.
func Definitions(t testing.TB, count int) []File {
	t.Helper()
	return pick(t, read(t).CRDs, count)
}

// Synthetic returns the definitions for cases that no project has: names, versions and schemas at their limits.
func Synthetic(t testing.TB) []File {
	t.Helper()
	all := read(t).Synthetic
	return pick(t, all, len(all))
}

// Objects returns count objects of projects, of custom and of built-in kinds, spread over the corpus, and fails the test
// if it has fewer.
func Objects(t testing.TB, count int) []File {
	t.Helper()
	return pick(t, read(t).Objects, count)
}

func read(t testing.TB) index {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir(t), "index.json"))
	if err != nil {
		t.Fatalf("reading the corpus: %v", err)
	}
	var all index
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatalf("reading the corpus: %v", err)
	}
	return all
}

func dir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv(dirEnv)
	switch {
	case dir != "":
	case os.Getenv(requireEnv) == "1":
		t.Fatalf("%s=1, but the test needs the corpus (%s is not set): run `make test`", requireEnv, dirEnv)
	default:
		t.Skipf("needs the corpus (%s is not set): run `make test`", dirEnv)
	}
	return dir
}

// pick returns count of all, evenly spread, with their JSON.
func pick(t testing.TB, all []File, count int) []File {
	t.Helper()
	if count > len(all) {
		t.Fatalf("the corpus has %d of the %d that are asked for", len(all), count)
	}
	t.Logf("%d of %d in the corpus", count, len(all))
	picked := make([]File, count)
	for i := range picked {
		one := all[i*len(all)/count]
		text, err := os.ReadFile(filepath.Join(dir(t), filepath.FromSlash(one.File)))
		if err != nil {
			t.Fatalf("reading the corpus: %v", err)
		}
		one.JSON = text
		picked[i] = one
	}
	return picked
}
