package difftest

import (
	"encoding/json"
	"strings"
)

// object returns an object of the kind with metadata.
func (g *generator) object(k *kind, name string) map[string]any {
	object := k.body(g.r)
	metadata := map[string]any{"name": name, "labels": g.labels(k)}
	if g.once(4) {
		metadata["annotations"] = map[string]any{"note": g.choose("a", "b", "")}
	}
	if g.once(12) {
		metadata["finalizers"] = []any{"diff.example/hold"}
	}
	if g.once(25) {
		metadata["ownerReferences"] = []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "11111111-2222-3333-4444-555555555555"}}
	}
	object["metadata"] = metadata
	return object
}

func (g *generator) labels(k *kind) map[string]any {
	labels := map[string]any{"app": g.choose("web", "db", "cache")}
	if !k.namespaced {
		labels["run"] = "${p}"
	}
	if g.once(2) {
		labels["tier"] = g.choose("front", "back")
	}
	return labels
}

// oddMetadata returns a merge patch of metadata that the server changes, ignores or rejects.
func (g *generator) oddMetadata() map[string]any {
	return []map[string]any{
		{"name": "Bad_Name"}, {"name": ""}, {"name": strings.Repeat("n", 260)}, {"labels": map[string]any{"bad key": "x"}},
		{"labels": map[string]any{"app": "bad value!"}}, {"annotations": map[string]any{"": "x"}}, {"finalizers": []any{"nodomain"}},
		{"ownerReferences": []any{map[string]any{"kind": "X"}}}, {"generation": 77}, {"uid": "abc"}, {"deletionTimestamp": "2024-01-01T00:00:00Z"},
		{"creationTimestamp": "2024-01-01T00:00:00Z"}, {"resourceVersion": "5"}, {"namespace": "elsewhere"}, {"unknownField": true},
		{"labels": map[string]any{"app": 5}}, {"annotations": "text"}, {"selfLink": "/x"}, {"generateName": "generated-"},
		{"managedFields": []any{map[string]any{"manager": "m"}}}, {"deletionGracePeriodSeconds": 5},
	}[g.r.IntN(21)]
}

// options returns query parameters of a write.
func (g *generator) options() string {
	var parameters []string
	if g.once(10) {
		parameters = append(parameters, "dryRun=All")
	}
	if g.once(4) {
		parameters = append(parameters, "fieldManager="+g.choose("alice", "bob", "carol"))
	}
	if g.once(3) {
		parameters = append(parameters, "fieldValidation="+g.choose("Ignore", "Warn", "Strict"))
	}
	if g.once(30) {
		parameters = append(parameters, "pretty=true")
	}
	if g.fault == faultOptions {
		parameters = append(parameters, g.choose("dryRun=Some", "dryRun=All&dryRun=All", "fieldManager="+strings.Repeat("m", 130), "fieldManager=%07",
			"fieldValidation=Wrong", "fieldValidation=Strict&fieldValidation=Warn", "force=true", "force=x", "unknown=x", "pretty=x"))
	}
	return strings.Join(parameters, "&")
}

func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func decodeObject(text string) map[string]any {
	object := map[string]any{}
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		panic(err)
	}
	return object
}

// change applies the fault to an object.
func (g *generator) change(k *kind, object map[string]any, changesKind bool) map[string]any {
	switch g.fault {
	case faultMetadata:
		return mergeMaps(object, map[string]any{"metadata": g.oddMetadata()})
	case faultBody:
		switch choice := g.r.IntN(8); {
		case choice < 2 && !changesKind: // malformed
		case choice == 0:
			object["kind"] = g.choose("Wrong", "", "List")
		case choice == 1:
			object["apiVersion"] = g.choose("v9", "wrong/v1", "", "a/b/c")
		case choice == 2: // malformed
		default:
			return mergeMaps(object, k.brokenPatch(g.r))
		}
	}
	return object
}

func mergeMaps(base, patch map[string]any) map[string]any {
	for key, value := range patch {
		below, isMap := value.(map[string]any)
		inner, hasMap := base[key].(map[string]any)
		if isMap && hasMap {
			base[key] = mergeMaps(inner, below)
		} else {
			base[key] = value
		}
	}
	return base
}

// malformed returns body. With a fault of the body, it sometimes returns a malformed body.
func (g *generator) malformed(body string) string {
	if g.fault == faultBody && g.once(8) {
		return g.choose(`{`, ``, `[]`, `null`, `"text"`, `{"metadata":{"name":"a"},"metadata":{"name":"b"}}`, body+"x", `{"kind":`)
	}
	return body
}

// accept returns the Accept header of a write.
func (g *generator) accept() string {
	switch {
	case g.fault == faultOptions && g.once(4):
		return g.choose("text/html", "application/json;as=Wrong;v=v1;g=meta.k8s.io", "application/cbor;q=wrong")
	case g.once(25):
		return g.choose(tableAccept, partialAccept, "application/yaml", "*/*")
	}
	return ""
}

// mediaType returns the content type of a body. With a fault of options, it is sometimes wrong.
func (g *generator) mediaType(right string) string {
	if g.fault == faultOptions && g.once(4) {
		return g.choose("text/plain", "application/xml", "", "application/json; charset=utf-8")
	}
	return right
}
