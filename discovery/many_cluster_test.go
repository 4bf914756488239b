package discovery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/sandboxtest"
	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// manyLabel marks the definitions of this test, so that they can be deleted together.
const manyLabel = "many=true"

// definition is the n-th of varied definitions: scopes, versions, short names, some of them in several groups, categories,
// subresources and plurals that are no English.
func definition(n int) string {
	group, kind := fmt.Sprintf("g%d.many.example.com", n%30), fmt.Sprintf("Kind%d", n)
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
	text, _ := json.Marshal(map[string]any{ // maps of strings and numbers
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": fmt.Sprint(names["plural"], ".", group), "labels": map[string]any{"many": "true"}},
		"spec": map[string]any{
			"group": group, "scope": []string{"Namespaced", "Cluster"}[n%2], "names": names, "versions": versions,
		},
	})
	return string(text)
}

// defineMany creates definitions and waits until the server serves them all.
func defineMany(t *testing.T, conn *transport.Conn, client *discovery.Client, count int) {
	t.Helper()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		send(ctx, t, conn, http.MethodDelete, definitions+"?labelSelector="+strings.ReplaceAll(manyLabel, "=", "%3D"), "{}")
		// Later tests compare two listings, between which nothing may change.
		assert.Eventually(t, func() bool { snapshot, err := client.Refresh(ctx); return err == nil && len(manyOf(snapshot)) == 0 },
			time.Minute, 100*time.Millisecond)
	})
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for n := worker; n < count; n += 8 {
				response, err := conn.Do(t.Context(), &transport.Request{
					Method: http.MethodPost, Path: definitions, Body: []byte(definition(n)), Header: http.Header{"Content-Type": {"application/json"}},
				})
				if assert.NoError(t, err) {
					assert.NoError(t, response.Body.Close())
				}
			}
		})
	}
	all.Wait()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		snapshot, err := client.Refresh(t.Context())
		require.NoError(t, err)
		kinds := manyOf(snapshot)
		if len(kinds) == count {
			return
		}
		require.True(t, time.Now().Before(deadline), "only %d of %d kinds are served", len(kinds), count)
	}
}

// manyOf lists the kinds of this test that are served.
func manyOf(snapshot *discovery.Snapshot) map[string]bool {
	kinds := map[string]bool{}
	for _, resource := range sorted(snapshot) {
		if strings.HasSuffix(resource.GVR.Group, ".many.example.com") {
			kinds[resource.GVK.Kind] = true
		}
	}
	return kinds
}

func TestThreeHundredDefinitionsAreListedAsKubectlListsThem(t *testing.T) {
	conn := sandbox(t)
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("needs kubectl on the PATH, to compare with what it says")
	}
	client := discovery.New(conn, nil)
	defineMany(t, conn, client, 300)
	output, err := exec.CommandContext(t.Context(), kubectl, "--kubeconfig", sandboxtest.Kubeconfig(t), "--cache-dir", t.TempDir(),
		"api-resources", "-o", "wide", "--sort-by=name").Output()
	require.NoError(t, err)
	snapshot, err := client.Refresh(t.Context())
	require.NoError(t, err)
	assert.ElementsMatch(t, table(string(output)), rows(snapshot))
}
