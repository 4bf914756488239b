package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// Send makes a request of the sandbox's API server as an administrator and returns the answer's body. A GET accepts
// aggregated discovery.
type Send func(ctx context.Context, method, path, body string) (string, error)

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// Define creates so many varied CustomResourceDefinitions, in groups that end in .many.example.com, waits until
// discovery has them all, and removes them when the test ends.
func Define(t testing.TB, send Send, count int) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if _, err := send(ctx, "DELETE", definitionsPath+"?labelSelector=many%3Dtrue", "{}"); err != nil {
			t.Errorf("deleting the definitions: %v", err)
		}
		// Later tests may compare two listings, between which nothing may change.
		awaitKinds(ctx, t, send, 0)
	})
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for n := worker; n < count; n += 8 {
				if _, err := send(t.Context(), "POST", definitionsPath, definition(t, n)); err != nil {
					t.Errorf("creating definition %d: %v", n, err)
				}
			}
		})
	}
	all.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	awaitKinds(ctx, t, send, count)
}

var definedKind = regexp.MustCompile(`"kind":"Varied\d+"`)

// awaitKinds waits until discovery tells of so many kinds of Define's.
func awaitKinds(ctx context.Context, t testing.TB, send Send, count int) {
	t.Helper()
	for {
		answer, err := send(ctx, "GET", "/apis", "")
		kinds := map[string]bool{}
		for _, kind := range definedKind.FindAllString(answer, -1) {
			kinds[kind] = true
		}
		if err == nil && len(kinds) == count {
			return
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("waiting for %d kinds, of which %d are served: %v", count, len(kinds), err)
		}
	}
}

// definition is the n-th definition: scopes, versions, short names, some of them in several groups, categories,
// subresources and plurals that are no English.
func definition(t testing.TB, n int) string {
	group, kind := fmt.Sprintf("g%d.many.example.com", n%30), fmt.Sprintf("Varied%d", n)
	names := map[string]any{"plural": strings.ToLower(kind) + []string{"s", "es", "en", ""}[n%4], "singular": strings.ToLower(kind), "kind": kind}
	if n%3 == 0 {
		names["shortNames"] = []string{fmt.Sprintf("k%d", n), fmt.Sprintf("shared%d", n/30)}
	}
	if n%5 == 0 {
		names["categories"] = []string{"all", "many"}
	}
	var versions []any
	for i, name := range [][]string{{"v1"}, {"v1beta1", "v1"}, {"v1alpha1", "v2"}, {"v3", "v10", "foo"}}[n%4] {
		version := map[string]any{
			"name": name, "served": n%7 != 0 || i == 0, "storage": i == 0,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		}
		if n%2 == 0 {
			version["subresources"] = map[string]any{"status": map[string]any{}}
		}
		versions = append(versions, version)
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": fmt.Sprint(names["plural"], ".", group), "labels": map[string]any{"many": "true"}},
		"spec": map[string]any{
			"group": group, "scope": []string{"Namespaced", "Cluster"}[n%2], "names": names, "versions": versions,
		},
	})
	if err != nil {
		t.Errorf("writing definition %d: %v", n, err)
	}
	return string(text)
}
