//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/dev/bench/internal/measure"
	"github.com/anykind/anykind/internal/testing/corpus"
)

func TestMixedSet_ObjectsOfEveryResource(t *testing.T) {
	example := fields{"spec": fields{"size": 1.0}}
	set := &mixedSet{"here", []customKind{{"a.bench", "as", "A", []map[string]any{example}}, {"b.bench", "bs", "B", []map[string]any{example}}}}
	counts := map[string]int{}
	paths := map[string]bool{}
	for i := range 200 {
		obj := set.object(i)
		counts[obj.resource]++
		path := obj.path("here", obj.name)
		assert.False(t, paths[path], "%s is there twice", path)
		paths[path] = true
		assert.Equal(t, string(obj.body()), string(set.object(i).body()), "differs from run to run")
	}
	assert.Equal(t, map[string]int{
		"pods.v1.": 80, "deployments.v1.apps": 10, "configmaps.v1.": 20, "secrets.v1.": 20, "events.v1.": 30, "as.v1.a.bench": 20, "bs.v1.b.bench": 20,
	}, counts)
	assert.Len(t, set.resources(), len(counts))
	resources, err := (&measure.Settings{Resources: strings.Join(set.resources(), ",")}).ParseResources()
	require.NoError(t, err)
	for _, gvr := range resources {
		name := gvr.Resource + "." + gvr.Version + "." + gvr.Group
		assert.Positive(t, counts[name], name)
	}
	assert.Equal(t, fields{"spec": fields{"size": 1.0}}, example)
}

func TestMixed_ChangesMoreThanAnnotation(t *testing.T) {
	set := &mixedSet{"here", []customKind{{"a.bench", "as", "A", []map[string]any{{}}}}}
	for i := range 20 {
		obj := set.object(i)
		var before, after map[string]any
		at := time.Unix(1<<31, 0)
		require.NoError(t, json.Unmarshal(obj.change(at), &before))
		require.NoError(t, json.Unmarshal(obj.change(at.Add(time.Second)), &after))
		assert.Equal(t, map[string]any{
			"labels": map[string]any{"revision": "2147483648000"}, "annotations": map[string]any{"changed": "2147483648000000000"},
		}, before["metadata"], obj.resource)
		delete(before, "metadata")
		delete(after, "metadata")
		assert.NotEqual(t, before, after, obj.resource)
	}
}

func TestReadKinds_SpreadOverCorpus(t *testing.T) {
	corpus.Definitions(t, 1) // skips without the corpus
	kinds, err := readKinds(customKinds)
	require.NoError(t, err)
	names := map[string]bool{}
	groups := map[string]bool{}
	for _, kind := range kinds {
		names[kind.plural+"."+kind.group] = true
		groups[kind.group] = true
		assert.GreaterOrEqual(t, len(kind.examples), minExamples, kind.kind)
		assert.True(t, json.Valid(kind.definition()), kind.kind)
	}
	assert.Len(t, names, customKinds)
	assert.Greater(t, len(groups), 15)
}

func TestReadKinds_RejectsMissingCorpus(t *testing.T) {
	t.Setenv("ANYKIND_CORPUS", "")
	_, err := readKinds(1)
	require.ErrorContains(t, err, "run `make bench`")
	dir := t.TempDir()
	t.Setenv("ANYKIND_CORPUS", dir)
	_, err = readKinds(1)
	require.ErrorContains(t, err, "index.json")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "index.json"), []byte(`{}`), 0o600))
	_, err = readKinds(1)
	require.ErrorContains(t, err, "has 0 kinds with 3 objects, want 1")
}
