// Package corpus provides CustomResourceDefinitions and objects of public projects to tests. The module corpus collects them.
// `make test` runs it and sets ANYKIND_CORPUS; by hand:
//
//	ANYKIND_CORPUS=$(go run -C corpus .) go test ./...
//
// Without the corpus, a test that needs it is skipped, or fails if ANYKIND_REQUIRE_SANDBOX=1.
package corpus

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

const (
	dirEnv     = "ANYKIND_CORPUS"          // folder of the corpus
	requireEnv = "ANYKIND_REQUIRE_SANDBOX" // 1: a missing corpus fails the test
)

// File is an object of the corpus. Group and Kind of a CustomResourceDefinition are the defined group and kind.
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

// Definitions returns count CustomResourceDefinitions of projects, spread over the corpus. The same count returns the same
// definitions. It fails the test if the corpus has fewer.
func Definitions(t testing.TB, count int) []File {
	t.Helper()
	return pick(t, read(t).CRDs, count)
}

// Synthetic returns generated definitions for cases without an example in a project: names, versions and schemas at their
// limits.
func Synthetic(t testing.TB) []File {
	t.Helper()
	all := read(t).Synthetic
	return pick(t, all, len(all))
}

// Objects returns count objects of projects, of custom and built-in kinds, spread over the corpus. It fails the test if
// the corpus has fewer.
func Objects(t testing.TB, count int) []File {
	t.Helper()
	return pick(t, read(t).Objects, count)
}

func read(t testing.TB) index {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir(t), "index.json"))
	if err != nil {
		t.Fatalf("read the corpus: %v", err)
	}
	var all index
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatalf("read the corpus: %v", err)
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

// pick returns count of all files, evenly spread, with File.JSON set.
func pick(t testing.TB, all []File, count int) []File {
	t.Helper()
	if count > len(all) {
		t.Fatalf("the corpus has %d files, want %d", len(all), count)
	}
	t.Logf("%d of %d in the corpus", count, len(all))
	picked := make([]File, count)
	for i := range picked {
		one := all[i*len(all)/count]
		text, err := os.ReadFile(filepath.Join(dir(t), filepath.FromSlash(one.File)))
		if err != nil {
			t.Fatalf("read the corpus: %v", err)
		}
		one.JSON = text
		picked[i] = one
	}
	return picked
}

// RemoveRules removes the CEL rules of a definition or schema.
func RemoveRules(value any) {
	switch value := value.(type) {
	case map[string]any:
		if _, isList := value["x-kubernetes-validations"].([]any); isList {
			delete(value, "x-kubernetes-validations")
		}
		for _, child := range value {
			RemoveRules(child)
		}
	case []any:
		for _, child := range value {
			RemoveRules(child)
		}
	}
}
