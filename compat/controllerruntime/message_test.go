package controllerruntime

import (
	"bytes"
	"encoding/binary"
	"io"
	"reflect"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/anykind/anykind/unstructured"
)

// enveloped returns the body of an object as protobuf.
func enveloped(t testing.TB, kind string, obj interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	raw, err := obj.Marshal()
	require.NoError(t, err)
	body, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw}).Marshal()
	require.NoError(t, err)
	return append([]byte(magic), body...)
}

func samplePod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web"}, Finalizers: []string{"a/b"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Args: []string{"-v"}, Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}}},
	}
}

func TestDecodeTyped_ProtobufEveryByte(t *testing.T) {
	a := &apiClient{scheme: scheme.Scheme}
	body := enveloped(t, "Pod", samplePod())
	got := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod"}}
	require.NoError(t, a.decodeTyped(body, got, unstructured.Limits{}))
	assert.Equal(t, samplePod(), got)
	for cut := len(magic); cut < len(body); cut++ {
		before := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "before"}}
		if err := a.decodeTyped(body[:cut], before, unstructured.Limits{}); err != nil {
			assert.Equal(t, "before", before.Name)
		}
		for _, changed := range []byte{0, 0x7f, 0xff} {
			damaged := bytes.Clone(body)
			damaged[cut] = changed
			_ = a.decodeTyped(damaged, &corev1.Pod{}, unstructured.Limits{}) // no panic
		}
	}
}

func TestDecodeTyped_ProtobufStatus(t *testing.T) {
	a := &apiClient{scheme: scheme.Scheme}
	failure := &metav1.Status{Status: metav1.StatusFailure, Message: "no such pod", Reason: metav1.StatusReasonNotFound, Code: 404}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "before"}}
	require.EqualError(t, a.decodeTyped(enveloped(t, "Status", failure), pod, unstructured.Limits{}), "no such pod")
	require.NoError(t, a.decodeTyped(enveloped(t, "Status", &metav1.Status{Status: metav1.StatusSuccess}), pod, unstructured.Limits{}))
	assert.Equal(t, "before", pod.Name)
}

// field encodes a length-delimited field.
func field(number int, content []byte) []byte {
	data := binary.AppendUvarint(nil, uint64(number)<<3|2)
	return append(binary.AppendUvarint(data, uint64(len(content))), content...)
}

func TestExceedsMemory_ShortMessages(t *testing.T) {
	const limit = 8 << 20
	empty := bytes.Repeat(field(2, nil), 100_000) // 200 kB
	for name, test := range map[string]struct {
		raw     []byte
		into    message
		exceeds bool
	}{
		"containers":    {field(2, empty), &corev1.Pod{}, true},
		"pods":          {empty, &corev1.PodList{}, true},
		"strings":       {field(1, bytes.Repeat(field(14, nil), 400_000)), &corev1.Pod{}, true}, // finalizers
		"entries":       {field(1, bytes.Repeat(field(11, nil), 100_000)), &corev1.Pod{}, true}, // labels
		"unknown":       {bytes.Repeat(field(100, nil), 100_000), &corev1.Pod{}, false},
		"long text":     {field(1, field(1, bytes.Repeat([]byte{'a'}, 4<<20))), &corev1.Pod{}, false},
		"too long text": {field(1, field(1, bytes.Repeat([]byte{'a'}, 9<<20))), &corev1.Pod{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := unmarshalMessage(test.raw, test.into, unstructured.Limits{Object: limit})
			var exceeded *unstructured.LimitError
			if test.exceeds {
				require.ErrorAs(t, err, &exceeded)
				assert.Equal(t, int64(limit), exceeded.Limit)
			} else {
				assert.NotErrorAs(t, err, &exceeded)
			}
		})
	}
}

// node contains itself.
type node struct {
	Child *node `protobuf:"bytes,1,opt,name=child"`
}

func TestExceedsMemory_DeepMessages(t *testing.T) {
	raw := []byte{}
	for range maxDepth - 1 {
		raw = field(1, raw)
	}
	assert.False(t, exceedsMemory(raw, reflect.TypeFor[node](), 1<<30))
	assert.True(t, exceedsMemory(field(1, raw), reflect.TypeFor[node](), 1<<30))
}

// TestExceedsMemory_BoundsGeneratedCode compares the sum with the live heap of the decoded object.
func TestExceedsMemory_BoundsGeneratedCode(t *testing.T) {
	for name, raw := range map[string][]byte{
		"containers":  field(2, bytes.Repeat(field(2, nil), 9000)),
		"strings":     field(1, bytes.Repeat(field(14, []byte("a")), 9000)),
		"owners":      field(1, bytes.Repeat(field(13, field(5, []byte("a"))), 9000)),
		"tolerations": field(2, bytes.Repeat(field(22, append(field(1, []byte("a")), 5<<3, 9)), 9000)),
		"limits":      field(2, bytes.Repeat(field(2, field(8, field(1, append(field(1, []byte("a")), field(2, field(1, []byte("1")))...)))), 9000)),
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{}
			var before, after goruntime.MemStats
			goruntime.GC()
			goruntime.ReadMemStats(&before)
			require.NoError(t, pod.Unmarshal(raw))
			goruntime.GC()
			goruntime.ReadMemStats(&after)
			live := int64(after.HeapAlloc) - int64(before.HeapAlloc)
			goruntime.KeepAlive(pod)
			assert.Greater(t, live, int64(9000))
			assert.True(t, exceedsMemory(raw, reflect.TypeFor[corev1.Pod](), live/2), "%d bytes", live)
			assert.False(t, exceedsMemory(raw, reflect.TypeFor[corev1.Pod](), 4*live), "%d bytes", live)
		})
	}
}

func TestReadFrame_EveryByte(t *testing.T) {
	event := metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: enveloped(t, "Pod", samplePod())}}
	encoded, err := event.Marshal()
	require.NoError(t, err)
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(encoded))), encoded...)
	var buffer bytes.Buffer
	read, err := readFrame(bytes.NewReader(frame), &buffer, unstructured.Limits{})
	require.NoError(t, err)
	eventType, object, err := splitEvent(read)
	require.NoError(t, err)
	assert.Equal(t, "ADDED", string(eventType))
	assert.Equal(t, event.Object.Raw, object)
	for cut := range frame {
		want := io.ErrUnexpectedEOF
		if cut == 0 {
			want = io.EOF
		}
		_, err := readFrame(bytes.NewReader(frame[:cut]), &buffer, unstructured.Limits{})
		require.Equal(t, want, err, "after %d bytes", cut)
	}
	_, err = readFrame(strings.NewReader("\x7f\xff\xff\xff"), &buffer, unstructured.Limits{})
	require.ErrorAs(t, err, new(*unstructured.LimitError))
}

func FuzzDecodeMessage(f *testing.F) {
	f.Add(enveloped(f, "Pod", samplePod())[len(magic):])
	f.Fuzz(func(t *testing.T, data []byte) {
		body := append([]byte(magic), data...)
		pod := &corev1.Pod{}
		_, _ = decodeMessage(body, pod, unstructured.Limits{Object: 8 << 20})
		if eventType, object, err := splitEvent(data); err == nil && len(object) > len(data) {
			t.Error(eventType, object)
		}
	})
}
