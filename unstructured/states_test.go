package unstructured

import (
	"bytes"
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// stateOf is a state of one object, as a server sends it.
func stateOf(version int, rest string) string {
	return fmt.Sprintf(`{"kind":"Thing","apiVersion":"v1","metadata":{"name":"a","uid":"u1","resourceVersion":"%d","labels":{"app":"web"}}%s}`, version, rest)
}

// finding finds also what is short.
func finding() *Parts {
	parts := NewParts()
	parts.states.least = 0
	return parts
}

func TestWhatHasNotChangedOfAnObjectIsNotMadeAgain(t *testing.T) {
	const spec = `,"spec":{"a":{"b":1},"list":[{"x":1.5},{"x":"y"}]}`
	all := readShared(t, finding(), modified(
		stateOf(1, spec+`,"status":{"ready":true,"conditions":[{"type":"A","status":"True"},{"type":"B","status":"True"}]}`),
		stateOf(2, spec+`,"status":{"ready":true,"conditions":[{"type":"A","status":"True"},{"type":"B","status":"False"}]}`)))
	before, now := all[0], all[1]
	assert.Equal(t, where(t, before, "spec"), where(t, now, "spec"))
	assert.Equal(t, where(t, before, "metadata", "labels"), where(t, now, "metadata", "labels"))
	assert.NotEqual(t, where(t, before, "status"), where(t, now, "status"))
	assert.NotEqual(t, where(t, before, "status", "conditions"), where(t, now, "status", "conditions"))
	assert.Equal(t, element(t, before, 0, "status", "conditions"), element(t, now, 0, "status", "conditions"))
	assert.NotEqual(t, element(t, before, 1, "status", "conditions"), element(t, now, 1, "status", "conditions"))
	was, _, err := Get[string](before, "status", "conditions", "[type=B]", "status")
	require.NoError(t, err)
	assert.Equal(t, "True", was, "what was read stays as it was")
	assert.Equal(t, "2", now.GetResourceVersion())
}

// element is where an element of a list is in memory.
func element(t *testing.T, obj *Object, i int, fields ...string) uintptr {
	t.Helper()
	list, _, err := unstructured.NestedFieldNoCopy(obj.Object, fields...)
	require.NoError(t, err)
	elements, isList := list.([]any)
	require.True(t, isList)
	return reflect.ValueOf(elements[i]).Pointer()
}

func TestWhatAnEntryOfManagedFieldsSaysOfFieldsIsNotMadeAgain(t *testing.T) {
	state := func(version int, annotations string) string {
		return fmt.Sprintf(`{"kind":"Thing","metadata":{"name":"a","uid":"u1","resourceVersion":"%[1]d","managedFields":[`+
			`{"manager":"m","time":"%[1]d","fieldsV1":{"f:metadata":{%[2]s"f:labels":{"f:app":{}}},"f:spec":{"f:a":{}}}}]}}`, version, annotations)
	}
	all := readShared(t, finding(), modified(state(1, ""), state(2, ""), state(3, `"f:annotations":{},`)))
	var entries []*Object
	for i, obj := range all {
		list, _, err := unstructured.NestedFieldNoCopy(obj.Object, "metadata", "managedFields")
		require.NoError(t, err)
		entry := list.([]any)[0].(map[string]any)
		assert.Equal(t, strconv.Itoa(i+1), entry["time"])
		entries = append(entries, &Object{Object: entry})
	}
	assert.Equal(t, where(t, entries[0], "fieldsV1"), where(t, entries[1], "fieldsV1"))
	assert.NotEqual(t, where(t, entries[1], "fieldsV1"), where(t, entries[2], "fieldsV1"))
	assert.Equal(t, where(t, entries[1], "fieldsV1", "f:spec"), where(t, entries[2], "fieldsV1", "f:spec"))
}

func TestWhatHasNotChangedIsKnownThroughStatesThatHaveItWhole(t *testing.T) {
	status := func(a, b string) string { return fmt.Sprintf(`,"status":{"list":[{"a":%q},{"b":%q}]}`, a, b) }
	all := readShared(t, finding(), modified(
		stateOf(1, status("1", "1")), stateOf(2, status("1", "1")), stateOf(3, status("1", "1")), stateOf(4, status("1", "2"))))
	assert.Equal(t, where(t, all[0], "status"), where(t, all[2], "status"))
	assert.NotEqual(t, where(t, all[2], "status"), where(t, all[3], "status"))
	assert.Equal(t, element(t, all[0], 0, "status", "list"), element(t, all[3], 0, "status", "list"))
}

func TestAnObjectIsFoundWhereverItsChunksEnd(t *testing.T) {
	large := fmt.Sprintf(`,"spec":{"a":%q},"status":{"b":%q}`, strings.Repeat("x", 6000), strings.Repeat("y", 6000))
	for name, r := range chunked([]byte(`{"type":"ADDED","object":` + stateOf(1, large) + "}" + `{"type":"MODIFIED","object":` + stateOf(2, large) + "}")) {
		t.Run(name, func(t *testing.T) {
			all := readShared(t, NewParts(), r)
			require.Len(t, all, 2)
			for _, field := range []string{"spec", "status"} {
				assert.Equal(t, where(t, all[0], field), where(t, all[1], field), field)
			}
		})
	}
}

func TestAnObjectOfManyPartsHasFewDigests(t *testing.T) {
	var list []string
	for i := range 10_000 {
		list = append(list, fmt.Sprintf(`{"a":%d}`, i))
	}
	many := `,"spec":{"list":[` + strings.Join(list, ",") + "]}"
	parts := finding()
	all := readShared(t, parts, modified(stateOf(1, many), stateOf(2, many)))
	assert.LessOrEqual(t, len(parts.states.last["u1"].Value().digests), 2*digests)
	assert.Equal(t, all[0].Object["spec"], all[1].Object["spec"])
	runtime.KeepAlive(all)
}

func TestAnObjectThatIsTheSameAgainHasMetadataOfItsOwn(t *testing.T) {
	all := readShared(t, finding(), modified(stateOf(1, ""), stateOf(1, ""), stateOf(1, ""), stateOf(1, "")))
	all[3].SetName("other")
	all[3].SetKind("Other")
	for _, before := range all[:3] {
		assert.Equal(t, "a", before.GetName())
		assert.Equal(t, "Thing", before.GetKind())
	}
}

func TestAnObjectThatComesAgainInAListIsNotMadeAgain(t *testing.T) {
	parts := finding()
	all := readShared(t, parts, modified(stateOf(1, `,"spec":{"a":1}`)))
	list := NewListDecoder(strings.NewReader(`{"kind":"ThingList","apiVersion":"v1","items":[` + stateOf(1, `,"spec":{"a":1}`) + "]}"))
	list.Share(parts)
	again, err := list.Next()
	require.NoError(t, err)
	assert.Equal(t, where(t, all[0], "spec"), where(t, again, "spec"))
}

// TestWhatLooksLikeTheLastStateIsNot has pairs of which each is read behind the other.
func TestWhatLooksLikeTheLastStateIsNot(t *testing.T) {
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
			var objects []string
			for i := range 6 { // so often that equal parts are kept, too
				objects = append(objects, stateOf(i, `,"spec":`+pair[i%2]+`,"under":{"list":[`+pair[i%2]+`]}`))
			}
			assertAsAlone(t, objects...)
		})
	}
}

func TestMetadataMayBeAnything(t *testing.T) {
	for _, metadata := range []string{
		`null`, `1`, `[]`, `{}`, `{"uid":1}`, `{"uid":null}`, `{"uid":""}`, `{"uid":{"a":1}}`,
		`{"labels":{"a":"b"},"name":"a","uid":"u1"}`, `{"uid":"u1","uid":"u2"}`, `{"uid":"u2","labels":{"a":"b"}}`,
	} {
		obj := `{"spec":{"a":1},"metadata":` + metadata + `,"apiVersion":"v1","status":{"a":[1]},"metadata":` + metadata + `,"kind":"Thing"}`
		assertAsAlone(t, stateOf(1, ""), obj, stateOf(2, ""), obj, obj, stateOf(3, `,"spec":{"a":1}`), obj)
	}
}

// assertAsAlone reads objects of a watch, with equal parts shared, and each for itself.
func assertAsAlone(t *testing.T, objects ...string) {
	t.Helper()
	all := readShared(t, finding(), modified(objects...))
	for i, obj := range objects {
		alone, err := Decode([]byte(obj))
		require.NoError(t, err)
		// Printed, since a zero equals another of the other sign.
		assert.Equal(t, fmt.Sprintf("%#v", alone.Object), fmt.Sprintf("%#v", all[i].Object))
	}
}

func TestStatesThatNobodyHoldsAreForgotten(t *testing.T) {
	parts := NewParts()
	for i := range 10 * fewStates {
		readShared(t, parts, modified(fmt.Sprintf(`{"kind":"Thing","apiVersion":"v1","metadata":{"uid":"u%d"}}`, i)))
		if i%fewStates == 0 {
			runtime.GC()
		}
	}
	assert.LessOrEqual(t, len(parts.states.last), 4*fewStates)
}

func TestTheStateOfADeletedObjectIsForgotten(t *testing.T) {
	parts := NewParts()
	held := readShared(t, parts, modified(stateOf(1, "")))
	require.Len(t, parts.states.last, 1)
	readShared(t, parts, strings.NewReader(`{"type":"DELETED","object":`+stateOf(2, "")+"}"))
	assert.Empty(t, parts.states.last)
	runtime.KeepAlive(held)
}

// FuzzStates reads two states of one object, in turn and in pieces.
func FuzzStates(f *testing.F) {
	const before, after = `{"a":[1,{"b":"c"}],"d":{"e":null}}`, `{"a":[1,{"b":"d"}],"d":{"e":null},"f":-0.0}`
	f.Add([]byte(before), []byte(after))
	for _, data := range samples(f) {
		f.Add(data, []byte(before))
		f.Add(bytes.Replace(data, []byte(`1`), []byte(`2`), 1), data)
	}
	for _, value := range nastyValues {
		if len(value) < 1000 {
			f.Add([]byte(value), []byte(before))
		}
	}
	f.Fuzz(func(t *testing.T, before, after []byte) {
		frame := func(spec []byte) []byte {
			return []byte(`{"type":"MODIFIED","object":` + stateOf(1, `,"spec":`+string(spec)) + "}\n")
		}
		parts := finding()
		var held []Event[Object]
		for i := range 6 {
			data := frame([][]byte{before, after}[i%2])
			want, wantErr := readEvents(NewWatchDecoder(bytes.NewReader(data)))
			for _, r := range chunked(data) {
				events := NewWatchDecoder(r)
				events.Share(parts)
				got, err := readEvents(events)
				assert.Equal(t, fmt.Sprintf("%#v", objectsOf(want)), fmt.Sprintf("%#v", objectsOf(got)))
				assert.Equal(t, text(wantErr), text(err))
				held = append(held, got...)
			}
		}
		runtime.KeepAlive(held)
	})
}

func objectsOf(events []Event[Object]) (all []map[string]any) {
	for _, event := range events {
		all = append(all, event.Object.Object)
	}
	return all
}

// TestStates_SkipObjectsWithDuplicateKeys has states whose digests do not belong to what their objects hold: of members
// with one name each was read, and the last one stayed.
func TestStates_SkipObjectsWithDuplicateKeys(t *testing.T) {
	const first, last = `{"list":["first"]}`, `{"list":["last"]}`
	for name, rest := range map[string]struct{ twice, once string }{
		"in the object": {`"spec":` + first + `,"spec":` + last, `"spec":` + first},
		"deeper":        {`"spec":{"x":` + first + `,"x":` + last + `}`, `"spec":{"x":` + first + `}`},
		"in a list":     {`"spec":[{"x":` + first + `,"x":` + last + `}]`, `"spec":[{"x":` + first + `}]`},
		"in metadata":   {`"metadata":{"uid":"u1","labels":{"a":"1"},"labels":{"a":"2"}}`, `"metadata":{"uid":"u1","labels":{"a":"1"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			twice, once := rest.twice, rest.once
			if name != "in metadata" {
				twice, once = `"metadata":{"uid":"u1"},`+twice, `"metadata":{"uid":"u1"},`+once
			}
			twice, once = `{"kind":"Thing",`+twice+"}", `{"kind":"Thing",`+once+"}"
			assertAsAlone(t, twice, once, twice, once)
		})
	}
}
