package jsonread

import (
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/anykind/anykind/internal/testing/jsoncases"
)

// versionOf is a version of one object, as a server sends it.
func versionOf(version int, rest string) string {
	return fmt.Sprintf(`{"kind":"Thing","apiVersion":"v1","metadata":{"name":"a","uid":"u1","resourceVersion":"%d","labels":{"app":"web"}}%s}`, version, rest)
}

// testInterner compares short values, too.
func testInterner() *Interner {
	interner := NewInterner()
	interner.MinDigested = 0
	return interner
}

func TestPreviousVersions_ReuseUnchangedSubtrees(t *testing.T) {
	const spec = `,"spec":{"a":{"b":1},"list":[{"x":1.5},{"x":"y"}]}`
	all := decodeAll(t, testInterner(), objects(
		versionOf(1, spec+`,"status":{"ready":true,"conditions":[{"type":"A","status":"True"},{"type":"B","status":"True"}]}`),
		versionOf(2, spec+`,"status":{"ready":true,"conditions":[{"type":"A","status":"True"},{"type":"B","status":"False"}]}`)))
	before := all[0]
	now := all[1]
	assert.Equal(t, address(t, before, "spec"), address(t, now, "spec"))
	assert.Equal(t, address(t, before, "metadata", "labels"), address(t, now, "metadata", "labels"))
	assert.NotEqual(t, address(t, before, "status"), address(t, now, "status"))
	assert.NotEqual(t, address(t, before, "status", "conditions"), address(t, now, "status", "conditions"))
	assert.Equal(t, elementAddress(t, before, 0, "status", "conditions"), elementAddress(t, now, 0, "status", "conditions"))
	assert.NotEqual(t, elementAddress(t, before, 1, "status", "conditions"), elementAddress(t, now, 1, "status", "conditions"))
	conditions, _, err := unstructuredv1.NestedSlice(before.Object, "status", "conditions")
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"type": "B", "status": "True"}, conditions[1], "what was read stays as it was")
	assert.Equal(t, "2", now.GetResourceVersion())
}

// elementAddress returns the address of a list's element in memory.
func elementAddress(t *testing.T, obj *unstructuredv1.Unstructured, i int, fields ...string) uintptr {
	t.Helper()
	list, _, err := unstructuredv1.NestedFieldNoCopy(obj.Object, fields...)
	require.NoError(t, err)
	elements, isList := list.([]any)
	require.True(t, isList)
	return reflect.ValueOf(elements[i]).Pointer()
}

func TestPreviousVersions_ManagedFields(t *testing.T) {
	state := func(version int, annotations string) string {
		return fmt.Sprintf(`{"kind":"Thing","metadata":{"name":"a","uid":"u1","resourceVersion":"%[1]d","managedFields":[`+
			`{"manager":"m","time":"%[1]d","fieldsV1":{"f:metadata":{%[2]s"f:labels":{"f:app":{}}},"f:spec":{"f:a":{}}}}]}}`, version, annotations)
	}
	all := decodeAll(t, testInterner(), objects(state(1, ""), state(2, ""), state(3, `"f:annotations":{},`)))
	var entries []*unstructuredv1.Unstructured
	for i, obj := range all {
		list, _, err := unstructuredv1.NestedFieldNoCopy(obj.Object, "metadata", "managedFields")
		require.NoError(t, err)
		entry := list.([]any)[0].(map[string]any)
		assert.Equal(t, strconv.Itoa(i+1), entry["time"])
		entries = append(entries, &unstructuredv1.Unstructured{Object: entry})
	}
	assert.Equal(t, address(t, entries[0], "fieldsV1"), address(t, entries[1], "fieldsV1"))
	assert.NotEqual(t, address(t, entries[1], "fieldsV1"), address(t, entries[2], "fieldsV1"))
	assert.Equal(t, address(t, entries[1], "fieldsV1", "f:spec"), address(t, entries[2], "fieldsV1", "f:spec"))
}

func TestPreviousVersions_ReuseAcrossUnchangedVersions(t *testing.T) {
	status := func(a, b string) string { return fmt.Sprintf(`,"status":{"list":[{"a":%q},{"b":%q}]}`, a, b) }
	all := decodeAll(t, testInterner(), objects(
		versionOf(1, status("1", "1")), versionOf(2, status("1", "1")), versionOf(3, status("1", "1")), versionOf(4, status("1", "2"))))
	assert.Equal(t, address(t, all[0], "status"), address(t, all[2], "status"))
	assert.NotEqual(t, address(t, all[2], "status"), address(t, all[3], "status"))
	assert.Equal(t, elementAddress(t, all[0], 0, "status", "list"), elementAddress(t, all[3], 0, "status", "list"))
}

func TestPreviousVersions_AnyChunks(t *testing.T) {
	large := fmt.Sprintf(`,"spec":{"a":%q},"status":{"b":%q}`, strings.Repeat("x", 6000), strings.Repeat("y", 6000))
	for name, r := range jsoncases.Chunked([]byte(versionOf(1, large) + versionOf(2, large))) {
		t.Run(name, func(t *testing.T) {
			all := decodeAll(t, NewInterner(), r)
			require.Len(t, all, 2)
			for _, field := range []string{"spec", "status"} {
				assert.Equal(t, address(t, all[0], field), address(t, all[1], field), field)
			}
		})
	}
}

func TestPreviousVersions_FewDigests(t *testing.T) {
	var list []string
	for i := range 10_000 {
		list = append(list, fmt.Sprintf(`{"a":%d}`, i))
	}
	many := `,"spec":{"list":[` + strings.Join(list, ",") + "]}"
	interner := testInterner()
	all := decodeAll(t, interner, objects(versionOf(1, many), versionOf(2, many)))
	assert.LessOrEqual(t, len(interner.versions.last["u1"].Value().digests), 2*maxDigests)
	assert.Equal(t, all[0].Object["spec"], all[1].Object["spec"])
	runtime.KeepAlive(all)
}

func TestPreviousVersions_MetadataIsNew(t *testing.T) {
	all := decodeAll(t, testInterner(), objects(versionOf(1, ""), versionOf(1, ""), versionOf(1, ""), versionOf(1, "")))
	all[3].SetName("other")
	all[3].SetKind("Other")
	for _, before := range all[:3] {
		assert.Equal(t, "a", before.GetName())
		assert.Equal(t, "Thing", before.GetKind())
	}
}

// TestPreviousVersions_SimilarValues has pairs of which each is read behind the other.
func TestPreviousVersions_SimilarValues(t *testing.T) {
	many := func(last string) string {
		var members strings.Builder
		for i := range 40 {
			fmt.Fprintf(&members, `"m%d":%d,`, i, i)
		}
		return "{" + members.String() + last + "}"
	}
	for name, pair := range map[string][2]string{
		"a member twice for two":         {`{"a":1,"b":2}`, `{"a":1,"a":1}`},
		"a member twice for many":        {many(`"z":1`), many(`"m0":0`)},
		"a null of another name":         {`{"a":null}`, `{"b":null}`},
		"no null":                        {`{"a":null}`, `{}`},
		"a null more":                    {`[1]`, `[1,null]`},
		"an element less":                {`[1,2]`, `[1]`},
		"nothing, in all its forms":      {`{}`, `[]`},
		"nothing and null":               {`[]`, `null`},
		"zeros that differ by sign":      {`[0.0]`, `[-0.0]`},
		"whole numbers and others":       {`{"a":1}`, `{"a":1.0}`},
		"a number and its text":          {`{"a":1}`, `{"a":"1"}`},
		"an object for a text":           {`{"a":"x"}`, `{"a":{"a":"x"}}`},
		"a list for an object":           {`{"a":{"0":1}}`, `{"a":[1]}`},
		"another order":                  {`{"a":1,"b":[2]}`, `{"b":[2],"a":1}`},
		"the same with space in between": {`{"a":[1,{"b":2}]}`, `{"a": [1, {"b" : 2}]}`},
		"a beginning of it":              {`{"a":{"b":"xyz"},"c":1}`, `{"a":{"b":"xy"},"c":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			var versions []string
			for i := range 6 { // so often that equal parts are kept, too
				versions = append(versions, versionOf(i, `,"spec":`+pair[i%2]+`,"under":{"list":[`+pair[i%2]+`]}`))
			}
			assertDecodedAsAlone(t, versions...)
		})
	}
}

func TestPreviousVersions_OddMetadata(t *testing.T) {
	for _, metadata := range []string{
		`null`, `1`, `[]`, `{}`, `{"uid":1}`, `{"uid":null}`, `{"uid":""}`, `{"uid":{"a":1}}`,
		`{"labels":{"a":"b"},"name":"a","uid":"u1"}`, `{"uid":"u1","uid":"u2"}`, `{"uid":"u2","labels":{"a":"b"}}`,
	} {
		obj := `{"spec":{"a":1},"metadata":` + metadata + `,"apiVersion":"v1","status":{"a":[1]},"metadata":` + metadata + `,"kind":"Thing"}`
		assertDecodedAsAlone(t, versionOf(1, ""), obj, versionOf(2, ""), obj, obj, versionOf(3, `,"spec":{"a":1}`), obj)
	}
}

// assertDecodedAsAlone reads objects of a watch, with equal parts shared, and each for itself.
func assertDecodedAsAlone(t *testing.T, versions ...string) {
	t.Helper()
	all := decodeAll(t, testInterner(), objects(versions...))
	for i, obj := range versions {
		alone, err := decode([]byte(obj))
		require.NoError(t, err)
		// Printed, since a zero equals another of the other sign.
		assert.Equal(t, fmt.Sprintf("%#v", alone), fmt.Sprintf("%#v", all[i].Object))
	}
}

func TestPreviousVersions_UIDsBelowMetadata(t *testing.T) {
	state := func(changed int) string { // labels are unchanged, but not the map that they are in
		return versionOf(changed, fmt.Sprintf(`,"spec":{"target":{"uid":"u1","changed":%d,"labels":{"app":"other"}}}`, changed))
	}
	assertDecodedAsAlone(t, state(1), state(2), state(3))
}

func TestPreviousVersions_ForgetUnheldObjects(t *testing.T) {
	interner := NewInterner()
	for i := range 10 * minVersions {
		decodeAll(t, interner, objects(fmt.Sprintf(`{"kind":"Thing","apiVersion":"v1","metadata":{"uid":"u%d"}}`, i)))
		if i%minVersions == 0 {
			runtime.GC()
		}
	}
	assert.LessOrEqual(t, len(interner.versions.last), 4*minVersions)
}

func TestPreviousVersions_ForgetDeletedObjects(t *testing.T) {
	interner := NewInterner()
	held := decodeAll(t, interner, objects(versionOf(1, "")))
	require.Len(t, interner.versions.last, 1)
	r := NewReader(interner.Source(objects(versionOf(2, ""))), 4<<10)
	v, err := r.TopValue()
	require.NoError(t, err)
	r.NewObject(v.(map[string]any), true)
	assert.Empty(t, interner.versions.last)
	runtime.KeepAlive(held)
}

// TestPreviousVersions_SkipDuplicateMembers has states whose digests do not belong to what their objects hold: of members
// with one name each was read, and the last one stayed.
func TestPreviousVersions_SkipDuplicateMembers(t *testing.T) {
	const first, last = `{"list":["first"]}`, `{"list":["last"]}`
	for name, rest := range map[string]struct{ twice, once string }{
		"in the object": {`"spec":` + first + `,"spec":` + last, `"spec":` + first},
		"deeper":        {`"spec":{"x":` + first + `,"x":` + last + `}`, `"spec":{"x":` + first + `}`},
		"in a list":     {`"spec":[{"x":` + first + `,"x":` + last + `}]`, `"spec":[{"x":` + first + `}]`},
		"in metadata":   {`"metadata":{"uid":"u1","labels":{"a":"1"},"labels":{"a":"2"}}`, `"metadata":{"uid":"u1","labels":{"a":"1"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			twice := rest.twice
			once := rest.once
			if name != "in metadata" {
				twice = `"metadata":{"uid":"u1"},` + twice
				once = `"metadata":{"uid":"u1"},` + once
			}
			twice = `{"kind":"Thing",` + twice + "}"
			once = `{"kind":"Thing",` + once + "}"
			assertDecodedAsAlone(t, twice, once, twice, once)
		})
	}
}
