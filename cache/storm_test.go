package cache_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/internal/testing/workload"
	"github.com/anykind/anykind/transport"
)

// TestCache_CorrectAfterStorms writes while the proxy injects faults, and then compares. The seed of a round is in its
// name: ANYKIND_CHAOS_SEED=n ANYKIND_CHAOS_ROUNDS=1 repeats it.
func TestCache_CorrectAfterStorms(t *testing.T) {
	// No controller puts a Secret into a new namespace.
	secrets := resource(t, "secrets")
	crds := resource(t, "crd")
	first := workload.EnvNumber(t, "ANYKIND_CHAOS_SEED", 1)
	for seed := first; seed < first+workload.EnvNumber(t, "ANYKIND_CHAOS_ROUNDS", 6); seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			of := workloadFor(seed)
			if seed%6 == 3 { // the custom resource is deleted and recreated in mid-storm
				of.Come = of.Come + of.Stay
				of.Stay = 0
				createNoteKind(t, crds)
				notes := noteResource(t)
				runStorm(t, notes.Namespace(namespace(t)), of, seed, func() {
					deleteNoteKind(t, crds)
					createNoteKind(t, crds)
				})
				deleteNoteKind(t, crds)
				return
			}
			runStorm(t, secrets.Namespace(namespace(t)), of, seed, nil)
		})
	}
}

// workloadFor returns a workload of thousands of objects for every tenth storm, and of hundreds for another tenth.
func workloadFor(seed uint64) *workload.Workload {
	switch seed % 10 {
	case 0:
		return &workload.Workload{Stay: 1_000, Come: 2_000, Writers: 4, Writes: 500, MaxDelay: 10 * time.Millisecond, Reach: 1 << 18}
	case 5:
		return &workload.Workload{Stay: 100, Come: 200, Writers: 4, Writes: 100, MaxDelay: 15 * time.Millisecond, Reach: 1 << 16}
	default:
		return &workload.Workload{Stay: 5, Come: 20, Writers: 2, Writes: 60, MaxDelay: 15 * time.Millisecond, Reach: 1 << 12}
	}
}

func runStorm(t *testing.T, direct *dynamic.Resource, of *workload.Workload, seed uint64, midway func()) {
	t.Helper()
	s := newEnvironment(t, direct, seed)
	of.Populate(t, direct)
	s.follow(t)
	s.storm(t, of, seed, midway)
	s.compare(t)
	s.clear(t, of)
	s.close(t)
}

// TestCache_StormsLeaveNoMemory gives every object a long name, so that objects that are kept show on the heap.
func TestCache_StormsLeaveNoMemory(t *testing.T) {
	direct := resource(t, "secrets").Namespace(namespace(t))
	seed := workload.EnvNumber(t, "ANYKIND_CHAOS_SEED", 1)
	s := newEnvironment(t, direct, seed)
	s.follow(t)
	var heap []uint64
	for i := range 5 {
		of := &workload.Workload{
			Prefix: fmt.Sprintf("%s-%d-", strings.Repeat("long", 55), i),
			Stay:   200, Come: 400, Writers: 4, Writes: 50, MaxDelay: 15 * time.Millisecond, Reach: 1 << 16,
		}
		of.Populate(t, direct)
		s.storm(t, of, 7*seed, nil)
		s.compare(t)
		s.clear(t, of)
		runtime.GC()
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		heap = append(heap, now.HeapAlloc)
	}
	t.Logf("bytes on the heap after each storm: %v", heap)
	assert.Less(t, heap[4], heap[1]+1<<20, "on the heap after each storm: %v", heap)
	s.close(t)
}

// createNoteKind creates a kind without a schema, and waits until the server serves it.
func createNoteKind(t *testing.T, crds *dynamic.Resource) {
	t.Helper()
	_, err := crds.Create(t.Context(), &object{Object: map[string]any{
		"metadata": map[string]any{"name": "notes.storm.example.com"},
		"spec": map[string]any{
			"group": "storm.example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "notes", "kind": "Note"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		},
	}}, nil)
	require.NoError(t, err)
	_, err = crds.Wait(t.Context(), "notes.storm.example.com", dynamic.Condition("Established"))
	require.NoError(t, err)
}

// noteResource returns a handle on the kind once discovery lists it, which may be a moment after it is Established.
func noteResource(t *testing.T) *dynamic.Resource {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t), Context: "admin"})
	require.NoError(t, err)
	client, err := dynamic.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	var notes *dynamic.Resource
	require.Eventually(t, func() bool {
		notes, err = client.Resource(t.Context(), "notes.storm.example.com")
		return err == nil
	}, patience, 50*time.Millisecond)
	return notes
}

// deleteNoteKind deletes the kind and waits for that.
func deleteNoteKind(t *testing.T, crds *dynamic.Resource) {
	t.Helper()
	_, err := crds.Delete(t.Context(), "notes.storm.example.com", nil)
	require.NoError(t, err)
	_, err = crds.Wait(t.Context(), "notes.storm.example.com", dynamic.Deleted())
	require.NoError(t, err)
}
