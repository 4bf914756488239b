//go:build unix

package main

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/testing/cluster"
)

func TestChanged_EqualsPatch(t *testing.T) {
	server, err := connect(t.Context(), &options{kubeconfig: cluster.Kubeconfig(t), pods: []int{1}}, t.TempDir())
	require.NoError(t, err)
	defer server.client.Close()
	store, err := openEtcd(t.Context())
	require.NoError(t, err)
	defer store.close()
	const namespace = "bench-stored"
	require.NoError(t, server.createPods(t.Context(), namespace, 2))
	read := func() (pods [][]byte) {
		pods, err := store.values(t.Context(), podKey(namespace, ""))
		require.NoError(t, err)
		require.Len(t, pods, 2)
		return pods
	}

	at := time.Unix(1<<31, 0)
	before := read()
	require.NoError(t, server.patchPods(t.Context(), namespace, 2))
	for i, after := range read() {
		want := decodeStored(t, after)
		got, err := changed(before[i], at)
		require.NoError(t, err)
		once := decodeStored(t, got)
		assert.Equal(t, "2147483648000000000", once.Annotations["changed"])
		assert.Equal(t, withoutTimes(want), withoutTimes(once))
		got, err = changed(got, at)
		require.NoError(t, err)
		assert.Equal(t, withoutTimes(want), withoutTimes(decodeStored(t, got)), "changed twice")
	}
}

func TestOpenEtcd_NeedsSandbox(t *testing.T) {
	t.Setenv("ANYKIND_SANDBOX", "")
	_, err := openEtcd(t.Context())
	require.ErrorContains(t, err, "run `make bench`")
	t.Setenv("ANYKIND_SANDBOX", t.TempDir())
	_, err = openEtcd(t.Context())
	require.ErrorContains(t, err, "control.sock")
}

func decodeStored(t *testing.T, value []byte) *corev1.Pod {
	t.Helper()
	require.True(t, strings.HasPrefix(string(value), "k8s\x00"), "%.20q", value)
	pod := &corev1.Pod{}
	_, kind, err := stored.Decode(value, nil, pod)
	require.NoError(t, err)
	require.Equal(t, "/v1, Kind=Pod", kind.String())
	return pod
}

// withoutTimes returns the pod without the times of changes, by which the server also sorts managed fields.
func withoutTimes(pod *corev1.Pod) *corev1.Pod {
	pod.Annotations["changed"] = "then"
	for i := range pod.ManagedFields {
		pod.ManagedFields[i].Time = &metav1.Time{}
	}
	slices.SortFunc(pod.ManagedFields, func(a, b metav1.ManagedFieldsEntry) int { return cmp.Compare(a.Subresource, b.Subresource) })
	return pod
}
