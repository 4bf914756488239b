package protobuf

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/internal/limits"
)

// internTest decodes with an interner.
type internTest struct {
	interner *jsonread.Interner
	decoder  *Decoder
}

func newInternTest() internTest {
	i := internTest{jsonread.NewInterner(), NewDecoder(math.MaxInt64, errExceeded)}
	i.decoder.Intern(i.interner)
	return i
}

func (i internTest) decode(t *testing.T, s sample, raw []byte) *unstructuredv1.Unstructured {
	t.Helper()
	fields, err := i.decoder.Object(s.message, raw, s.typeMeta)
	require.NoError(t, err)
	return i.interner.NewObject(fields, false)
}

// withMetadata returns an encoded sample with changed metadata, which is the first field.
func withMetadata(t *testing.T, raw []byte, change func(*metav1.ObjectMeta)) []byte {
	t.Helper()
	first, rest, err := nextField(raw)
	require.NoError(t, err)
	var meta metav1.ObjectMeta
	require.NoError(t, meta.Unmarshal(first.bytes))
	change(&meta)
	encoded, err := meta.Marshal()
	require.NoError(t, err)
	return append(appendText([]byte{1<<3 | wireBytes}, string(encoded)), rest...)
}

// address returns the location of a field's map or list in memory.
func address(t *testing.T, obj *unstructuredv1.Unstructured, fields ...string) uintptr {
	t.Helper()
	v, found, err := unstructuredv1.NestedFieldNoCopy(obj.Object, fields...)
	require.NoError(t, err)
	require.True(t, found)
	return reflect.ValueOf(v).Pointer()
}

func TestDecoder_InternedObjectsAreEqual(t *testing.T) {
	interned := newInternTest()
	kept := map[string]*unstructuredv1.Unstructured{}
	for range 4 {
		for name, s := range samples(t) {
			got := interned.decode(t, s, s.raw)
			require.Equal(t, decodeJSON(t, s.json), got.Object)
			assert.Positive(t, interned.decoder.Memory())
			kept[name] = got
		}
	}
	for name, s := range samples(t) {
		assert.Equal(t, decodeJSON(t, s.json), kept[name].Object, "unchanged")
	}
}

// TestDecoder_InternSharesEqualParts decodes equal pods. Parts whose hashes collide in the interner's table are not shared, so up to ten
// interners are tried.
func TestDecoder_InternSharesEqualParts(t *testing.T) {
	s := readSample(t, "pod")
	isShared := false
	for range 10 {
		interned := newInternTest()
		var pods []*unstructuredv1.Unstructured
		for _, uid := range []string{"a", "b", "c", "d"} {
			raw := withMetadata(t, s.raw, func(meta *metav1.ObjectMeta) { meta.UID = types.UID(uid) })
			pods = append(pods, interned.decode(t, s, raw))
		}
		assert.NotEqual(t, address(t, pods[2], "metadata"), address(t, pods[3], "metadata"))
		isShared = isShared || address(t, pods[2], "spec") == address(t, pods[3], "spec") &&
			address(t, pods[2], "metadata", "labels") == address(t, pods[3], "metadata", "labels")
	}
	assert.True(t, isShared)
}

func TestDecoder_InternReusesPreviousVersion(t *testing.T) {
	s := readSample(t, "pod")
	interned := newInternTest()
	before := interned.decode(t, s, s.raw)
	after := interned.decode(t, s, withMetadata(t, s.raw, func(meta *metav1.ObjectMeta) { meta.ResourceVersion = "next" }))
	assert.Equal(t, "next", after.GetResourceVersion())
	assert.Equal(t, address(t, before, "spec"), address(t, after, "spec"))
	for range 3 {
		same := interned.decode(t, s, s.raw)
		assert.NotEqual(t, address(t, before, "metadata"), address(t, same, "metadata"), "a caller may change it")
		before = same
	}
	assert.Equal(t, address(t, before, "spec"), address(t, after, "spec"))
}

func TestDecoder_InternDistinguishesTypes(t *testing.T) {
	interned := newInternTest()
	s := readSample(t, "configmap")
	// data and binaryData have entries of the same text.
	entry := appendText(append(appendText([]byte{1<<3 | wireBytes}, "key"), 2<<3|wireBytes), "text")
	raw := bytes.Clone(appendText([]byte{2<<3 | wireBytes}, string(entry)))
	raw = append(raw, appendText([]byte{3<<3 | wireBytes}, string(entry))...)
	for range 4 {
		obj := interned.decode(t, s, raw)
		assert.Equal(t, map[string]any{"key": "text"}, obj.Object["data"])
		assert.Equal(t, map[string]any{"key": "dGV4dA=="}, obj.Object["binaryData"])
	}
}

func TestDecoder_ReusedPartsCount(t *testing.T) {
	s := readSample(t, "pod")
	interned := newInternTest()
	for range 4 {
		interned.decode(t, s, s.raw)
	}
	interned.decoder.Limit(limits.Memory(int64(len(s.raw))), errExceeded) // less than the parts and what is around them
	_, err := interned.decoder.Object(s.message, s.raw, s.typeMeta)
	require.ErrorIs(t, err, errExceeded)
}
