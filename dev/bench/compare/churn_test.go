//go:build unix

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestChurned_ChangesStatusAndUID(t *testing.T) {
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "old"},
		Spec:       corev1.PodSpec{NodeName: "node-1"},
		Status: corev1.PodStatus{
			Conditions: []corev1.PodCondition{{Type: "Ready"}}, ContainerStatuses: []corev1.ContainerStatus{{Name: "web", ContainerID: "old"}},
		},
	}
	before, err := runtime.Encode(stored, pod)
	require.NoError(t, err)
	after, err := churned(before, 258, "new", time.Unix(1<<31, 0))
	require.NoError(t, err)
	got := decodeStored(t, after)
	assert.Equal(t, "new", string(got.UID))
	assert.Equal(t, "258", got.Annotations["sequence"])
	assert.Equal(t, "10.0.1.2", got.Status.PodIP)
	assert.Equal(t, int64(1<<31), got.Status.Conditions[0].LastTransitionTime.Unix())
	assert.Equal(t, int32(258), got.Status.ContainerStatuses[0].RestartCount)
	assert.Equal(t, "containerd://new-258", got.Status.ContainerStatuses[0].ContainerID)
	assert.Equal(t, pod.Spec, got.Spec)
}

func TestChurnRows_GrowthOfEachSeries(t *testing.T) {
	figures := map[cost]float64{}
	for _, s := range churnSeries {
		for figure, bytes := range map[string]float64{
			"synced-rss": 40e6, "churned-rss": 50e6, "churned-peak-rss": 61e6,
			"synced-live": 20e6, "churned-live": 30e6, "synced-spans": 22e6, "churned-spans": 36e6,
		} {
			figures[s.cost(9, figure)] = bytes
		}
	}
	rows := churnRows(9, resultsWith(t, figures))
	require.Len(t, rows, len(churnSeries))
	assert.Equal(t, churnRow{"client-go, unstructured", "40.0 → 50.0 (1.25)", "20.0 → 30.0 (1.50)", "2.0 → 6.0 (3.00)", "61.0"}, rows[0])
}
