package unstructured

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParsePath_Forms(t *testing.T) {
	for text, want := range map[string][]string{
		".": nil, "{.}": nil, "spec": {"spec"}, ".spec": {"spec"}, "{.status.phase}": {"status", "phase"}, "{status.phase}": {"status", "phase"},
		"spec.containers[name=app].image": {"spec", "containers", "[name=app]", "image"}, ".spec.containers[0].image": {"spec", "containers", "0", "image"},
		"spec.containers.0.image": {"spec", "containers", "0", "image"}, "matrix[0][1]": {"matrix", "0", "1"}, "[3]": {"3"}, `["a"]`: {"a"},
		`metadata.annotations["a.b/c"]`: {"metadata", "annotations", "a.b/c"}, `metadata.annotations['a.b/c']`: {"metadata", "annotations", "a.b/c"},
		`{.metadata.labels.app\.kubernetes\.io/name}`: {"metadata", "labels", "app.kubernetes.io/name"}, "metadata.labels.a/b": {"metadata", "labels", "a/b"},
		`ports[containerPort=80,protocol=TCP].name`: {"ports", "[containerPort=80,protocol=TCP]", "name"}, `a[name="x]y"].z`: {"a", `[name="x]y"]`, "z"},
		`a["x y"="b"]`: {"a", `["x y"="b"]`}, `a[image=web:1.0/x=y]`: {"a", "[image=web:1.0/x=y]"}, `a["\"\u00e9\n"]`: {"a", "\"é\n"}, `a['it\'s']`: {"a", "it's"}, `a[""]`: {"a", ""},
		"x-kubernetes-list-map-keys": {"x-kubernetes-list-map-keys"}, "a.$ref": {"a", "$ref"}, "日本.語": {"日本", "語"}, `a\\b`: {`a\b`}, "a[007]": {"a", "007"},
		"spec.containers[*].image": {"spec", "containers", "[*]", "image"}, "{[*][*]}": {"[*]", "[*]"},
	} {
		t.Run(text, func(t *testing.T) {
			fields, err := ParsePath(text)
			require.NoError(t, err)
			assert.Equal(t, want, fields)
		})
	}
}

func TestParsePath_Errors(t *testing.T) {
	for text, want := range map[string]string{
		"": `path "": byte 0: the end is where a field's name should be`, "a..b": `path "a..b": byte 2: "." is where a field's name should be`,
		"a.": `path "a.": byte 2: the end is where a field's name should be`, "..": `path "..": byte 1: "." is where a field's name should be`,
		"a[0": `path "a[0": byte 3: the end is where a by-key step has =`, "a[]": `path "a[]": byte 2: "]" is no index, ["name"] or [key=value]`,
		"a[*1]": `path "a[*1]": byte 2: "*" is no index, ["name"] or [key=value]`, "a[-1]": `path "a[-1]": byte 2: "-" is no index, ["name"] or [key=value]`,
		"a[?(@.b)]": `path "a[?(@.b)]": byte 2: "?" is no index, ["name"] or [key=value]`, "a.*": `path "a.*": byte 2: "*" is in a field's name; write ["name"] if that is meant`,
		"a[0:2]": `path "a[0:2]": byte 5: "]" is where a by-key step has =`, "a b": `path "a b": byte 1: " " is in a field's name; write ["name"] if that is meant`,
		"a[0]b": `path "a[0]b": byte 4: "b" is where a step should begin with . or [`, "{.a": `path "{.a": byte 0: "{" is without its }`, "a}": `path "a}": byte 1: "}" is in a field's name; write ["name"] if that is meant`,
		"{}": `path "{}": byte 1: the end is where a field's name should be`, "a[b=]": `path "a[b=]": byte 4: "]" is where a key or value should be; put what is unusual in quotes`,
		"a[=b]": `path "a[=b]": byte 2: "=" is where a key or value should be; put what is unusual in quotes`, "a[b=c,]": `path "a[b=c,]": byte 6: "]" is where a key or value should be; put what is unusual in quotes`,
		"a[b=c": `path "a[b=c": byte 5: the end is where a by-key step has , or ]`, `a["b]`: `path "a[\"b]": byte 2: "\"" begins a text whose quotes do not end or that has an unknown escape sequence`,
		"a['b]": `path "a['b]": byte 2: "'" begins a text whose quotes do not end`, "a['b'=c]": `path "a['b'=c]": byte 5: "=" is where ] should be`,
		"a[b = c]": `path "a[b = c]": byte 3: " " is where a by-key step has =`, "a]": `path "a]": byte 1: "]" is in a field's name; write ["name"] if that is meant`,
		`a\`: `path "a\\": byte 1: "\\" is in a field's name; write ["name"] if that is meant`,
	} {
		t.Run(text, func(t *testing.T) {
			fields, err := ParsePath(text)
			assert.EqualError(t, err, want)
			assert.Nil(t, fields)
		})
	}
}

// oddSteps are steps that a path's text must keep apart.
var oddSteps = []string{
	"spec", "0", "12", "007", "", ".", "a.b", "[", "]", "[0]", "[a]", "[a=b]", `[a="b,c]"]`, `["a.b"=c,d=1]`, `["a"]`, "['a']", "[a=b", "[a=b]]", "[a=b][c=d]", "a=b", "{a}", "{", `"`, "'", `\`, "a b", "\n", "é",
	"\xff", "[a=\xff]", "*", "?", "@", "-1", "a,b", "\u2028", "[\u00a0=a]", "[a=b=c]", "[*]", "$", "[=]", "['a=b]",
}

func TestParsePath_RoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		fields := make([]string, 1+random.IntN(4))
		for i := range fields {
			fields[i] = oddSteps[random.IntN(len(oddSteps))]
		}
		got, err := ParsePath(pathText(fields))
		require.NoError(t, err, "%q", fields)
		require.Equal(t, fields, got)
	}
}

func FuzzParsePath(f *testing.F) {
	for _, text := range []string{"spec.containers[name=app].image", `{.a\.b["c d"]['e'][0][x="1",y=2]}`, "..", "a[", "\xff[\xfe=\xfd]"} {
		f.Add(text, "spec")
	}
	for _, step := range oddSteps {
		f.Add(pathText([]string{step, step}), step)
	}
	f.Fuzz(func(t *testing.T, text, step string) {
		if fields, err := ParsePath(text); err == nil {
			again, err := ParsePath(pathText(fields))
			require.NoError(t, err)
			assert.Equal(t, fields, again)
		} else {
			assert.True(t, strings.HasPrefix(err.Error(), "path "), err.Error())
		}
		fields := []string{"a", step, step}
		again, err := ParsePath(pathText(fields))
		require.NoError(t, err)
		assert.Equal(t, fields, again)
	})
}

func pod() *Object {
	return &Object{Object: map[string]any{
		"kind": "Pod", "[name=app]": "a field",
		"spec": map[string]any{"containers": []any{
			"odd", map[string]any{"name": "init"},
			map[string]any{"name": "app", "image": "web:1", "ports": []any{
				map[string]any{"containerPort": int64(80), "protocol": "UDP"}, map[string]any{"containerPort": int64(80), "protocol": "TCP", "name": "http"},
				map[string]any{"containerPort": "80", "name": "text"}, map[string]any{"containerPort": 1.5, "on": true, "name": "half"},
			}},
			map[string]any{"name": "app", "image": "second"}, map[string]any{"name": "a,b]", "image": "odd"},
		}},
	}}
}

func TestGet_ByKeys(t *testing.T) {
	for text, want := range map[string]any{
		"spec.containers[name=app].image": "web:1", `spec.containers[name="app"].image`: "web:1", `spec.containers[name="a,b]"].image`: "odd",
		"spec.containers[name=app,image=second].image": "second", "spec.containers[name=app].ports[containerPort=80].protocol": "UDP",
		"spec.containers[name=app].ports[containerPort=80,protocol=TCP].name": "http", `spec.containers[name=app].ports[containerPort="80"].name`: "text",
		"spec.containers[name=app].ports[on=true].name": "half", "spec.containers[name=app].ports[containerPort=1.5].name": "half", "[name=app]": "a field",
		"spec.containers[name=none].image": nil, "spec.containers[image=web:1,name=init]": nil, "spec.containers[name=app].ports[containerPort=080]": nil, `spec.containers[name=app].ports[on="true"]`: nil, "spec.containers[nothing=null]": nil,
	} {
		t.Run(text, func(t *testing.T) {
			fields, err := ParsePath(text)
			require.NoError(t, err)
			value, found, err := Get[any](pod(), fields...)
			require.NoError(t, err)
			assert.Equal(t, want != nil, found)
			assert.Equal(t, want, value)
		})
	}
}

func TestGet_LazyByKeys(t *testing.T) {
	const text = `{"kind":"A","l":[1,"x",null,[],{},{"n":{"a":1}},{"n":null},{"n":"a","n":"b"},{"\u006e":"a","v":1,"p":80,"o":true,"f":1.0},{"n":"a","v":2,"p":"80","f":1.50},{"n":"q\"]","v":[{"n":"a"}]}],"m":{"[n=a]":1},"s":[]}`
	obj := decoded(t, text)
	for _, l := range []*Lazy{lazy(t, text), lazy(t, strings.ReplaceAll(text, ",", " ,\n "))} {
		for _, list := range []string{"l", "m", "s", "none", "kind"} {
			for _, step := range []string{"[n=a]", "[n=b]", "[n=q]", `[n="q\"]"]`, "[p=80]", `[p="80"]`, "[o=true,v=1]", "[f=1]", "[f=1.0]", "[f=1.5]", "[n=null]", "[v=2,n=a]", "[n=c]", "[n", "[]", "[n=a]x", "n"} {
				assertGetIs(t, obj, l, []string{list, step})
				assertGetIs(t, obj, l, []string{list, step, "v"})
				assertGetIs(t, obj, l, []string{list, step, "v", "[n=a]", "n"})
			}
		}
	}
}

func TestGet_InvalidStepAtList(t *testing.T) {
	for step, want := range map[string]string{
		"app":        `.spec.containers: is []any, which has no field "app"`,
		"[name":      `.spec.containers: is []any, whose by-key step cannot be read: path "[name": byte 5: the end is where a by-key step has =`,
		"[name=a]x":  `.spec.containers: is []any, whose by-key step cannot be read: path "[name=a]x": byte 8: "x" is behind the ]`,
		"[name=app]": `.spec.containers[name=app].image: is string, not int64`,
	} {
		_, _, err := Get[int64](pod(), "spec", "containers", step, "image")
		assert.EqualError(t, err, want)
	}
}
