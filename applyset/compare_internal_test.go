package applyset

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/unstructured"
)

const comparedLive = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","labels":{"app":"web"},"managedFields":[
	{"manager":"ours","operation":"Apply","fieldsType":"FieldsV1","apiVersion":"apps/v1","fieldsV1":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{
		"f:replicas":{},"f:selector":{},"f:strategy":{},"f:template":{"f:spec":{"f:containers":{
			"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:image":{},"f:args":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}},
				"f:resources":{"f:requests":{"f:cpu":{}}}},
			"k:{\"name\":\"log\"}":{".":{},"f:name":{}}}}}}}},
	{"manager":"theirs","operation":"Update","fieldsType":"FieldsV1","apiVersion":"apps/v1","time":"2026-01-02T03:04:05Z","fieldsV1":{"f:spec":{"f:paused":{}}}},
	{"manager":"scaler","operation":"Update","subresource":"scale","fieldsType":"FieldsV1","apiVersion":"apps/v1","fieldsV1":{"f:spec":{"f:replicas":{}}}}]},
	"spec":{"replicas":2,"paused":true,"selector":{"matchLabels":{"app":"web"}},"strategy":{"type":"RollingUpdate"},"template":{"spec":{"containers":[
		{"name":"web","image":"nginx","args":["a","b"],"ports":[{"containerPort":80,"protocol":"TCP"}],"resources":{"requests":{"cpu":"1"}}},
		{"name":"log","image":"log"}]}}},"status":{"replicas":2}}`

const comparedWant = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","creationTimestamp":null,"labels":{"app":"web"}},
	"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"strategy":{},"template":{"spec":{"containers":[
		{"name":"web","image":"nginx","args":["a","b"],"ports":[{"containerPort":80}],"resources":{"requests":{"cpu":"1000m"}}},
		{"name":"log"}]}}},"status":{}}`

func decodeObject(t testing.TB, text string) *unstructured.Object {
	t.Helper()
	obj, err := unstructured.Decode([]byte(text))
	require.NoError(t, err)
	return obj
}

func TestCompare_Differences(t *testing.T) {
	container := []string{"spec", "template", "spec", "containers", "[name=web]"}
	for name, tc := range map[string]struct {
		value any // nil deletes the field
		path  []string
		want  []FieldDrift
	}{
		"equal":   {2, []string{"spec", "replicas"}, nil},
		"changed": {3, []string{"spec", "replicas"}, []FieldDrift{{Field: ".spec.replicas", Difference: Changed, Manager: "scaler", Subresource: "scale", Want: "3", Have: "2"}}},
		"removed": {nil, []string{"spec", "replicas"}, []FieldDrift{{Field: ".spec.replicas", Difference: Removed, Manager: "scaler", Subresource: "scale", Have: "2"}}},
		"missing": {"x", []string{"metadata", "labels", "a.b/c"}, []FieldDrift{{Field: ".metadata.labels.a.b/c", Difference: Missing, Want: `"x"`}}},
		"not owned": {true, []string{"spec", "paused"}, []FieldDrift{{
			Field: ".spec.paused", Difference: NotOwned, Manager: "theirs", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Want: "true", Have: "true",
		}}},
		"atomic list": {[]any{"b", "a"}, append(container, "args"), []FieldDrift{{
			Field: `.spec.template.spec.containers[name="web"].args`, Difference: Changed, Want: `["b","a"]`, Have: `["a","b"]`,
		}}},
		"quantity": {"2", append(container, "resources", "requests", "cpu"), []FieldDrift{{
			Field: `.spec.template.spec.containers[name="web"].resources.requests.cpu`, Difference: Changed, Want: `"2"`, Have: `"1"`,
		}}},
		"item's field of nobody": {"log", []string{"spec", "template", "spec", "containers", "[name=log]", "image"}, []FieldDrift{{
			Field: `.spec.template.spec.containers[name="log"].image`, Difference: NotOwned, Want: `"log"`, Have: `"log"`,
		}}},
		"further item": {"new", []string{"spec", "template", "spec", "containers", "[name=log]", "name"}, []FieldDrift{
			{Field: `.spec.template.spec.containers[name="new"]`, Difference: Missing, Want: `{"name":"new"}`},
			{Field: `.spec.template.spec.containers[name="log"]`, Difference: Removed},
		}},
		"selector": {map[string]any{}, []string{"spec", "selector"}, []FieldDrift{{
			Field: ".spec.selector", Difference: Changed, Want: "{}", Have: `{"matchLabels":{"app":"web"}}`,
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			want := decodeObject(t, comparedWant)
			if tc.value == nil {
				_, err := unstructured.Delete(want, tc.path...)
				require.NoError(t, err)
			} else {
				require.NoError(t, unstructured.Set(want, tc.value, tc.path...))
			}
			assert.Equal(t, tc.want, compare(want, decodeObject(t, comparedLive), "ours", true))
		})
	}
}

func TestCompare_OrderOfItems(t *testing.T) {
	want := decodeObject(t, comparedWant)
	containers, _, err := unstructured.Get[[]any](want, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	slices.Reverse(containers)
	require.NoError(t, unstructured.Set(want, containers, "spec", "template", "spec", "containers"))
	drifts := compare(want, decodeObject(t, comparedLive), "ours", true)
	require.Len(t, drifts, 1)
	assert.Equal(t, ".spec.template.spec.containers", drifts[0].Field)
	assert.Equal(t, Changed, drifts[0].Difference)
}

// TestCompare_FieldsOfKinds compares fields whose name has a meaning in built-in kinds only, or in some of them.
func TestCompare_FieldsOfKinds(t *testing.T) {
	const binding = "admissionregistration.k8s.io/v1"
	for name, tc := range map[string]struct {
		apiVersion, owned, want, have string
		drift                         Difference // "" means none
	}{
		"struct with defaults":       {"apps/v1", `{"f:strategy":{}}`, `{"strategy":{}}`, `{"strategy":{"type":"RollingUpdate"}}`, ""},
		"struct owned as a whole":    {binding, `{"f:matchResources":{}}`, `{"matchResources":{}}`, `{"matchResources":{"namespaceSelector":{"a":"b"}}}`, Changed},
		"reference":                  {"v1", `{"f:claimRef":{}}`, `{"claimRef":{}}`, `{"claimRef":{"name":"a"}}`, Changed},
		"quantity":                   {"v1", `{"f:hard":{"f:pods":{}}}`, `{"hard":{"pods":"1000m"}}`, `{"hard":{"pods":"1"}}`, ""},
		"quantity of data":           {"v1", `{"f:data":{"f:sizeLimit":{}}}`, `{"data":{"sizeLimit":"1Gi"}}`, `{"data":{"sizeLimit":"1024Mi"}}`, Changed},
		"quantity of a selector":     {"v1", `{"f:nodeSelector":{}}`, `{"nodeSelector":{"sizeLimit":"1"}}`, `{"nodeSelector":{"sizeLimit":"1000m"}}`, Changed},
		"struct of a custom kind":    {"x.k8s.io/v1", `{"f:strategy":{}}`, `{"strategy":{}}`, `{"strategy":{"type":"RollingUpdate"}}`, Changed},
		"quantity of a custom kind":  {"x.k8s.io/v1", `{"f:hard":{"f:pods":{}}}`, `{"hard":{"pods":"1.10"}}`, `{"hard":{"pods":"1.1"}}`, Changed},
		"default in a custom kind":   {"x.k8s.io/v1", `{"f:ports":{}}`, `{"ports":[{"port":1}]}`, `{"ports":[{"port":1,"protocol":"TCP"}]}`, Changed},
		"empty struct of a manager":  {"apps/v1", `{}`, `{"securityContext":{}}`, `{"securityContext":{"runAsUser":1}}`, NotOwned},
		"empty list of a manager":    {"apps/v1", `{}`, `{"args":[]}`, `{"args":["a"]}`, NotOwned},
		"empty struct of the set":    {"apps/v1", `{"f:securityContext":{}}`, `{"securityContext":{}}`, `{"securityContext":{"runAsUser":1}}`, ""},
		"null of a field of nobody":  {"apps/v1", `{}`, `{"args":null}`, `{}`, ""},
		"empty struct of nobody yet": {"apps/v1", `{}`, `{"securityContext":{}}`, `{}`, Missing},
	} {
		t.Run(name, func(t *testing.T) {
			const object = `{"apiVersion":"VERSION","kind":"x","metadata":{"name":"a"MANAGED},"spec":SPEC,"data":{}}`
			managed := `,"managedFields":[{"manager":"ours","operation":"Apply","fieldsType":"FieldsV1","apiVersion":"VERSION","fieldsV1":{"f:data":{},"f:spec":OWNED}},
				{"manager":"theirs","operation":"Update","fieldsType":"FieldsV1","apiVersion":"VERSION","fieldsV1":{"f:spec":{"f:securityContext":{"f:runAsUser":{}}}}}]`
			fill := func(managed, spec string) *unstructured.Object {
				text := strings.ReplaceAll(object, "MANAGED", managed)
				return decodeObject(t, strings.NewReplacer("VERSION", tc.apiVersion, "OWNED", tc.owned, "SPEC", spec).Replace(text))
			}
			drifts := compare(fill("", tc.want), fill(managed, tc.have), "ours", true)
			if tc.drift == "" {
				assert.Empty(t, drifts)
			} else if assert.NotEmpty(t, drifts) {
				assert.Equal(t, tc.drift, drifts[0].Difference)
			}
		})
	}
}

func TestCompare_HidesDataOfSecrets(t *testing.T) {
	const lastApplied = `"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":{\"password\":\"OLD\"}}"`
	const managed = `"managedFields":[{"manager":"ours","operation":"Apply","fieldsType":"FieldsV1","apiVersion":"v1","fieldsV1":{"f:data":{"f:password":{}},
		"f:metadata":{"f:annotations":{"f:a":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}}]`
	for name, tc := range map[string]struct {
		want, live string
		drifts     []FieldDrift
	}{
		"data": {
			`"metadata":{"name":"a","annotations":{}},"data":{"password":"new"}`, `"metadata":{"name":"a","annotations":{}},"data":{"password":"old"}`,
			[]FieldDrift{{Field: ".data.password", Difference: Changed}},
		},
		"last-applied annotation": {
			`"metadata":{"name":"a","annotations":{` + strings.Replace(lastApplied, "OLD", "new", 1) + `}}`, `"metadata":{"name":"a","annotations":{` + lastApplied + `}}`,
			[]FieldDrift{{Field: ".metadata.annotations.kubectl.kubernetes.io/last-applied-configuration", Difference: Changed}},
		},
		"all annotations": {
			`"metadata":{"name":"a","annotations":{` + lastApplied + `}}`, `"metadata":{"name":"a"}`,
			[]FieldDrift{{Field: ".metadata.annotations", Difference: Missing}},
		},
		"a different annotation": {
			`"metadata":{"name":"a","annotations":{"a":"new"}}`, `"metadata":{"name":"a","annotations":{"a":"old"}}`,
			[]FieldDrift{{Field: ".metadata.annotations.a", Difference: Changed, Want: `"new"`, Have: `"old"`}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			const secret = `{"apiVersion":"v1","kind":"Secret",`
			live := strings.Replace(tc.live, `"name":"a"`, `"name":"a",`+managed, 1)
			assert.Equal(t, tc.drifts, compare(decodeObject(t, secret+tc.want+"}"), decodeObject(t, secret+live+"}"), "ours", false)[:1])
		})
	}
}

func TestDeleteField_Notations(t *testing.T) {
	for path, want := range map[string]string{
		".a.b/c.d":                         `{"list":[{"name":"x","port":80},{"name":"y"},{"name":"A&B"}],"set":["p","q"]}`,
		`.list[name="y"]`:                  `{"a.b/c":{"d":1},"list":[{"name":"x","port":80},{"name":"A&B"}],"set":["p","q"]}`,
		`.list[name="x",port=80].port`:     `{"a.b/c":{"d":1},"list":[{"name":"x"},{"name":"y"},{"name":"A&B"}],"set":["p","q"]}`,
		`.list[name="x",protocol="TCP"]`:   `{"a.b/c":{"d":1},"list":[{"name":"y"},{"name":"A&B"}],"set":["p","q"]}`,
		`.set[="p"]`:                       `{"a.b/c":{"d":1},"list":[{"name":"x","port":80},{"name":"y"},{"name":"A&B"}],"set":["q"]}`,
		`.list[name="A&B"]`:                `{"a.b/c":{"d":1},"list":[{"name":"x","port":80},{"name":"y"}],"set":["p","q"]}`,
		`.list[name="z"]`:                  "",
		`.list[`:                           "",
		`.list[name="x"`:                   "",
		`.list[protocol="TCP"]`:            "",
		`.set[="r"]`:                       "",
		`.none`:                            "",
		`.list[name="x",protocol=garbage]`: "",
	} {
		fields := map[string]any{
			"a.b/c": map[string]any{"d": int64(1)}, "set": []any{"p", "q"},
			"list": []any{map[string]any{"name": "x", "port": int64(80)}, map[string]any{"name": "y"}, map[string]any{"name": "A&B"}},
		}
		assert.Equal(t, want != "", deleteField(fields, path), "%s", path)
		if path == ".a.b/c.d" {
			assert.Empty(t, fields["a.b/c"])
			delete(fields, "a.b/c")
		}
		if want != "" {
			assert.JSONEq(t, want, encode(fields), "%s", path)
		}
	}
}

// TestDeleteField_SimilarItems has items with keys that begin like a different key, or lack a part with a default.
func TestDeleteField_SimilarItems(t *testing.T) {
	for path, want := range map[string]string{
		`.ports[port=80,protocol="TCP"].name`:   `[{"port":80,"protocol":"TCP"},{"name":"b","port":8080,"protocol":"TCP"},{"name":"c","port":53},{"name":"d","port":53,"protocol":"UDP"}]`,
		`.ports[port=8080,protocol="TCP"].name`: `[{"name":"a","port":80,"protocol":"TCP"},{"port":8080,"protocol":"TCP"},{"name":"c","port":53},{"name":"d","port":53,"protocol":"UDP"}]`,
		`.ports[port=53,protocol="TCP"].name`:   `[{"name":"a","port":80,"protocol":"TCP"},{"name":"b","port":8080,"protocol":"TCP"},{"port":53},{"name":"d","port":53,"protocol":"UDP"}]`,
		`.ports[port=53,protocol="UDP"]`:        `[{"name":"a","port":80,"protocol":"TCP"},{"name":"b","port":8080,"protocol":"TCP"},{"name":"c","port":53}]`,
	} {
		port := func(name string, port int64, protocol string) map[string]any {
			return map[string]any{"name": name, "port": port, "protocol": protocol}
		}
		fields := map[string]any{"ports": []any{
			port("a", 80, "TCP"), port("b", 8080, "TCP"), map[string]any{"name": "c", "port": int64(53)}, port("d", 53, "UDP"),
		}}
		assert.True(t, deleteField(fields, path), "%s", path)
		assert.JSONEq(t, want, encode(fields["ports"]), "%s", path)
	}
}

// FuzzCompare compares hostile objects, as a server could send them.
func FuzzCompare(f *testing.F) {
	f.Add(comparedWant, comparedLive, `.spec.template.spec.containers[name="web"].image`)
	f.Add(`{"apiVersion":"v1","kind":"x","a":[1]}`, `{"apiVersion":"v1","kind":"x","a":{},"metadata":{"managedFields":[1,{"fieldsV1":{"f:a":1,"k:":{},"k:{":{}}}]}}`, "[")
	f.Fuzz(func(t *testing.T, want, live, path string) {
		applied, err := unstructured.Decode([]byte(want))
		if err != nil {
			return
		}
		stored, err := unstructured.Decode([]byte(live))
		if err != nil {
			return
		}
		compare(applied, stored, "ours", true)
		deleteField(applied.Object, path)
	})
}
