package parity_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/corpus"
	"github.com/anykind/anykind/unstructured"
)

const typedPod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","labels":{"app":"web"},"creationTimestamp":"2026-01-02T03:04:05Z"},
"spec":{"terminationGracePeriodSeconds":30,"containers":[{"name":"app","image":"web:1","resources":{"limits":{"cpu":"500m","memory":"1Gi"}},
"ports":[{"containerPort":80,"protocol":"TCP"}],"livenessProbe":{"httpGet":{"port":"http","path":"/"},"periodSeconds":5}}],
"volumes":[{"name":"s","secret":{"secretName":"s","defaultMode":420}}]},"status":{"phase":"Running","startTime":"2026-01-02T03:04:05Z"}}`

func Example_pod() {
	obj, err := unstructured.Decode([]byte(typedPod))
	if err != nil {
		fmt.Println(err)
		return
	}
	pod, err := unstructured.As[corev1.Pod](obj)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(pod.Name, pod.Spec.Containers[0].Resources.Limits.Memory(), pod.Status.Phase)
	// Output: web 1Gi Running
}

func TestAs_GeneratedPod(t *testing.T) {
	var want corev1.Pod
	require.NoError(t, json.Unmarshal([]byte(typedPod), &want))
	obj, err := unstructured.Decode([]byte(typedPod))
	require.NoError(t, err)
	lazy, err := unstructured.DecodeLazy([]byte(typedPod))
	require.NoError(t, err)

	fromObject, err := unstructured.As[corev1.Pod](obj)
	require.NoError(t, err)
	assert.Equal(t, &want, fromObject)
	fromLazy, err := unstructured.As[corev1.Pod](lazy)
	require.NoError(t, err)
	assert.Equal(t, &want, fromLazy)
	back, err := unstructured.From(fromObject)
	require.NoError(t, err)
	backTwice, err := unstructured.As[corev1.Pod](back)
	require.NoError(t, err)
	assert.Equal(t, &want, backTwice)
}

// TestInto_EqualsClientGoDecoder converts the objects of public projects to the types of client-go's scheme.
func TestInto_EqualsClientGoDecoder(t *testing.T) {
	decoder := scheme.Codecs.UniversalDeserializer()
	compared := 0
	kinds := map[string]bool{}
	for _, file := range corpus.Objects(t, 3000) {
		obj, err := unstructured.Decode(file.JSON)
		require.NoError(t, err)
		into, err := scheme.Scheme.New(obj.GroupVersionKind())
		if apiruntime.IsNotRegisteredError(err) {
			continue
		}
		require.NoError(t, err)
		data, err := unstructured.Encode(obj)
		require.NoError(t, err)
		want, err := apiruntime.Decode(decoder, data)
		got := unstructured.Into(obj, into)
		require.Equal(t, err == nil, got == nil, "%s: client-go: %v, ours: %v", file.Name, err, got)
		if err != nil {
			continue
		}
		scheme.Scheme.Default(into) // the decoder sets defaults, too
		assert.Equal(t, want, into, file.Name)
		compared++
		kinds[obj.GetKind()] = true
	}
	t.Logf("%d objects of %d kinds", compared, len(kinds))
	assert.Greater(t, len(kinds), 10)
}

// TestAs_GeneratedTypesOnServer writes and reads corev1.ConfigMap through a handle.
func TestAs_GeneratedTypesOnServer(t *testing.T) {
	c := client.Connect(t, "")
	namespace := client.NewNamespace(t, c)
	configMaps := dynamic.As[corev1.ConfigMap](client.Resource(t, c, "configmaps").Namespace(namespace))
	settings := &corev1.ConfigMap{Data: map[string]string{"a": "b"}, BinaryData: map[string][]byte{"c": {1, 2}}}
	settings.Name = "settings"
	created, err := configMaps.Create(t.Context(), settings, nil)
	require.NoError(t, err)
	got, err := configMaps.Get(t.Context(), "settings", nil)
	require.NoError(t, err)
	assert.Equal(t, created, got)
	assert.Equal(t, settings.BinaryData, got.BinaryData)
	assert.NotEmpty(t, got.UID)
}
