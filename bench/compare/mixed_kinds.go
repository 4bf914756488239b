//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// customKinds is the number of kinds of custom resources in a mixed set.
const customKinds = 50

// minExamples is the least number of objects that the corpus has of a kind in a mixed set.
const minExamples = 3

// customKind is a kind of the corpus with its objects. The definition is not that of the corpus, which may reject examples
// of other versions: it permits any fields.
type customKind struct {
	group, plural, kind string
	examples            []map[string]any // without metadata
}

func (k customKind) definition() []byte {
	return fmt.Appendf(nil, `{"metadata":{"name":"%[2]s.%[1]s"},"spec":{"group":%[1]q,"scope":"Namespaced","names":{"plural":%[2]q,"singular":%[3]q,"kind":%[4]q},`+
		`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`,
		k.group, k.plural, strings.ToLower(k.kind), k.kind)
}

// readKinds returns kinds of the corpus, evenly spread.
func readKinds(count int) ([]customKind, error) {
	dir := os.Getenv("ANYKIND_CORPUS")
	if dir == "" {
		return nil, errors.New("missing ANYKIND_CORPUS, the folder with custom resources of public projects (run `make bench`)")
	}
	type file struct{ Name, Group, Kind, File string }
	var index struct{ CRDs, Objects []file }
	if err := readJSON(filepath.Join(dir, "index.json"), &index); err != nil {
		return nil, err
	}
	examples := map[[2]string][]file{}
	for _, f := range index.Objects {
		examples[[2]string{f.Group, f.Kind}] = append(examples[[2]string{f.Group, f.Kind}], f)
	}
	defined := slices.DeleteFunc(index.CRDs, func(f file) bool { return len(examples[[2]string{f.Group, f.Kind}]) < minExamples })
	if len(defined) < count {
		return nil, fmt.Errorf("the corpus in %s has %d kinds with %d objects, want %d", dir, len(defined), minExamples, count)
	}
	kinds := make([]customKind, count)
	for i := range kinds {
		f := defined[i*len(defined)/count]
		plural, _, _ := strings.Cut(f.Name, ".")
		// A group of its own: the definition differs from that of the corpus, which other tests create.
		kinds[i] = customKind{group: f.Group + ".bench", plural: plural, kind: f.Kind}
		for _, example := range examples[[2]string{f.Group, f.Kind}] {
			var fields map[string]any
			if err := readJSON(filepath.Join(dir, filepath.FromSlash(example.File)), &fields); err != nil {
				return nil, err
			}
			delete(fields, "metadata")
			kinds[i].examples = append(kinds[i].examples, fields)
		}
	}
	return kinds, nil
}

func readJSON(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the corpus: %w", err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("read %s of the corpus: %w", path, err)
	}
	return nil
}
