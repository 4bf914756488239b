// Package corpus reads CustomResourceDefinitions and objects of public projects for the benchmarks, from the folder in
// ANYKIND_CORPUS.
package corpus

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind of custom resources.
type Kind struct {
	GVR        schema.GroupVersionResource // in the storage version
	Kind       string
	Namespaced bool
	// Definition has the names and versions of the project, and schemas that permit any fields: objects of the project may be of a
	// different release than the definition.
	Definition map[string]any
	// Examples are objects of the project without metadata, at most five. There may be none.
	Examples []map[string]any
}

// maxExamples is the maximum number of Kind.Examples.
const maxExamples = 5

// file is a definition or an object of the corpus.
type file struct{ Group, Kind, File string }

// Read returns all kinds, ordered by the names of their definitions.
func Read() ([]Kind, error) {
	dir := os.Getenv("ANYKIND_CORPUS")
	if dir == "" {
		return nil, errors.New("missing ANYKIND_CORPUS, the folder with custom resources of public projects (run make)")
	}
	var index struct{ CRDs, Objects []file }
	if err := readJSON(filepath.Join(dir, "index.json"), &index); err != nil {
		return nil, err
	}
	examples := map[[2]string][]map[string]any{}
	for _, f := range index.Objects {
		if len(examples[[2]string{f.Group, f.Kind}]) == maxExamples {
			continue
		}
		var obj map[string]any
		if err := readJSON(filepath.Join(dir, filepath.FromSlash(f.File)), &obj); err != nil {
			return nil, err
		}
		delete(obj, "metadata")
		examples[[2]string{f.Group, f.Kind}] = append(examples[[2]string{f.Group, f.Kind}], obj)
	}
	kinds := make([]Kind, 0, len(index.CRDs))
	for _, f := range index.CRDs {
		kind, err := readKind(filepath.Join(dir, filepath.FromSlash(f.File)))
		if err != nil {
			return nil, err
		}
		kind.Examples = examples[[2]string{f.Group, f.Kind}]
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

func readKind(path string) (Kind, error) {
	var definition struct {
		Metadata struct {
			Name        string            `json:"name"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			Group string `json:"group"`
			Scope string `json:"scope"`
			Names struct {
				Plural string `json:"plural"`
				Kind   string `json:"kind"`
			} `json:"names"`
			Versions []struct {
				Name            string `json:"name"`
				Served, Storage bool
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := readJSON(path, &definition); err != nil {
		return Kind{}, err
	}
	spec := definition.Spec
	kind := Kind{Kind: spec.Names.Kind, Namespaced: spec.Scope == "Namespaced"}
	var versions []any
	for _, v := range spec.Versions {
		if v.Storage {
			kind.GVR = schema.GroupVersionResource{Group: spec.Group, Version: v.Name, Resource: spec.Names.Plural}
		}
		versions = append(versions, map[string]any{
			"name": v.Name, "served": v.Served, "storage": v.Storage,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		})
	}
	metadata := map[string]any{"name": definition.Metadata.Name}
	if reason := definition.Metadata.Annotations["api-approved.kubernetes.io"]; reason != "" {
		metadata["annotations"] = map[string]any{"api-approved.kubernetes.io": reason}
	}
	kind.Definition = map[string]any{"metadata": metadata, "spec": map[string]any{
		"group": spec.Group, "scope": spec.Scope, "versions": versions, "names": map[string]any{"plural": spec.Names.Plural, "kind": spec.Names.Kind},
	}}
	return kind, nil
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
