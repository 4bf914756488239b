package difftest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	jsonType      = "application/json"
	mergePatch    = "application/merge-patch+json"
	jsonPatch     = "application/json-patch+json"
	strategic     = "application/strategic-merge-patch+json"
	applyPatch    = "application/apply-patch+yaml"
	tableAccept   = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	partialAccept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	listAccept    = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// names is the number of names that objects of a kind have: few, so that operations meet.
const names = 5

// generator draws operations.
type generator struct {
	r     *rand.Rand
	ops   []Operation
	lists map[*kind][]int // indexes of lists with a limit
}

// verbs are the drawn operations and how often each is drawn.
func (g *generator) verbs() map[string]struct {
	weight int
	draw   func(k *kind)
} {
	type verb = struct {
		weight int
		draw   func(k *kind)
	}
	return map[string]verb{
		"create":           {2, g.create},
		"get":              {1, g.get},
		"list":             {1, g.list},
		"watch":            {1, g.watch},
		"update":           {1, g.update},
		"status":           {1, g.status},
		"scale":            {1, g.scale},
		"patch-json":       {1, g.patchJSON},
		"patch-merge":      {1, g.patchMerge},
		"patch-strategic":  {1, g.patchStrategic},
		"apply":            {2, g.apply},
		"delete":           {1, g.delete},
		"deletecollection": {1, g.deleteCollection},
	}
}

// generate returns at least count operations for each verb, in random order, and at the end a list of each kind.
func generate(r *rand.Rand, kinds []*kind, count int) []Operation {
	g := &generator{r: r, lists: map[*kind][]int{}}
	verbs := g.verbs()
	var order []string
	for _, name := range sortedKeys(verbs) {
		for range verbs[name].weight * count {
			order = append(order, name)
		}
	}
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, name := range order {
		k := kinds[r.IntN(len(kinds))]
		switch name {
		case "status":
			k = pick(r, kinds, func(k *kind) bool { return k.status })
		case "scale":
			k = pick(r, kinds, func(k *kind) bool { return k.scale })
		case "deletecollection":
			k = pick(r, kinds, func(k *kind) bool { return k.name != "Namespace" })
		}
		before := len(g.ops)
		verbs[name].draw(k)
		for i := before; i < len(g.ops); i++ {
			g.ops[i].Class, g.ops[i].Verb, g.ops[i].Kind = k.class, name, k.name
		}
	}
	for _, k := range kinds {
		g.add(Operation{Class: k.class, Verb: "final", Kind: k.name, Method: http.MethodGet, Path: k.collection(k.version), Query: g.own(k)})
	}
	return g.ops
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func pick(r *rand.Rand, kinds []*kind, want func(k *kind) bool) *kind {
	fitting := slices.DeleteFunc(slices.Clone(kinds), func(k *kind) bool { return !want(k) })
	return fitting[r.IntN(len(fitting))]
}

func (g *generator) add(op Operation) { g.ops = append(g.ops, op) }

// often reports true once in n.
func (g *generator) once(n int) bool { return g.r.IntN(n) == 0 }

func (g *generator) choose(values ...string) string { return values[g.r.IntN(len(values))] }

// own is the selector that keeps lists of cluster-scoped kinds to objects of the run.
func (g *generator) own(k *kind) string {
	if k.namespaced {
		return ""
	}
	return "labelSelector=" + url.QueryEscape("run=") + "${p}"
}

// version returns mostly the kind's main version.
func (g *generator) version(k *kind) string {
	if len(k.versions) > 0 && g.once(8) {
		return k.versions[g.r.IntN(len(k.versions))]
	}
	return k.version
}

func (g *generator) name(k *kind) string {
	if g.once(40) {
		return strings.TrimSuffix(k.objectName(0), "object-0") + "absent"
	}
	return k.objectName(g.r.IntN(names))
}

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

// oddMetadata is a merge patch of metadata that the server changes, ignores or rejects.
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
func (g *generator) options(k *kind, parameters ...string) string {
	if g.once(10) {
		parameters = append(parameters, "dryRun="+g.choose("All", "All", "All", "Some"))
	}
	if g.once(4) {
		parameters = append(parameters, "fieldManager="+g.choose("alice", "bob", strings.Repeat("m", 130)))
	}
	if g.once(3) {
		parameters = append(parameters, "fieldValidation="+g.choose("Ignore", "Warn", "Strict", "Strict", "Wrong"))
	}
	if g.once(30) {
		parameters = append(parameters, "pretty=true")
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

// change applies seldom something wrong to an object.
func (g *generator) change(k *kind, object map[string]any) map[string]any {
	switch {
	case g.once(6):
		return mergeMaps(object, k.brokenPatch(g.r))
	case g.once(8):
		return mergeMaps(object, map[string]any{"metadata": g.oddMetadata()})
	case g.once(60):
		object["kind"] = g.choose("Wrong", "", "List")
	case g.once(60):
		object["apiVersion"] = g.choose("v9", "wrong/v1", "", "a/b/c")
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

// malformed returns seldom a body that is no object.
func (g *generator) malformed(body string) string {
	if g.once(60) {
		return g.choose(`{`, ``, `[]`, `null`, `"text"`, `{"metadata":{"name":"a"},"metadata":{"name":"b"}}`, body+"x", `{"kind":`)
	}
	return body
}

func (g *generator) create(k *kind) {
	version := g.version(k)
	object := g.object(k, k.objectName(g.r.IntN(names)))
	object["apiVersion"] = k.apiVersion(version)
	if g.once(15) {
		metadata, _ := object["metadata"].(map[string]any)
		delete(metadata, "name")
		delete(metadata, "finalizers")
		metadata["generateName"] = strings.TrimSuffix(k.objectName(0), "0") + "generated-"
	}
	contentType := jsonType
	if g.once(50) {
		contentType = g.choose("text/plain", "application/yaml", "application/xml", "")
	}
	g.add(Operation{
		Method: http.MethodPost, Path: k.collection(version), Query: g.options(k), ContentType: contentType,
		Body: g.malformed(encode(g.change(k, object))), Accept: g.accept(),
	})
}

func (g *generator) accept() string {
	if g.once(25) {
		return g.choose(tableAccept, partialAccept, "application/yaml", "text/html", "*/*")
	}
	return ""
}

func (g *generator) get(k *kind) {
	version := g.version(k)
	op := Operation{Method: http.MethodGet, Path: k.collection(version) + "/" + g.name(k)}
	switch g.r.IntN(10) {
	case 0:
		op.Accept = tableAccept
	case 1:
		op.Accept = partialAccept
	case 2:
		op.Query = "resourceVersion=" + g.choose("0", "${rv:"+k.key(version, k.objectName(0))+"}", "abc")
	case 3:
		op.Path += "/" + g.choose("status", "scale", "nothing", "status")
	case 4:
		op.Accept, op.Query = tableAccept, "includeObject="+g.choose("None", "Object", "Metadata", "Wrong")
	}
	g.add(op)
}

// selector returns a label or field selector; those with positive match an object with app=web and tier=front.
func (g *generator) selector(k *kind, positive bool) string {
	labels := []string{"app=web", "app in (web,cache)", "tier", "app!=db", "tier=front,app=web", "!missing", "tier notin (back)"}
	fields := []string{"metadata.name!=absent", ""}
	if !positive {
		labels = append(labels, "!tier", "app=none", "app in (", "bad key=x", "=x")
		fields = append(fields, "metadata.name="+k.objectName(1), "spec.nothing=x", "metadata.name", "metadata.labels=x", "status.phase=Running", "spec.size=small")
		if k.namespaced {
			fields = append(fields, "metadata.namespace=${ns}", "metadata.namespace=elsewhere")
		}
	}
	var parameters []string
	if g.once(2) || !k.namespaced {
		text := labels[g.r.IntN(len(labels))]
		if !k.namespaced {
			text = "run=${p}," + text
		}
		parameters = append(parameters, "labelSelector="+escapeQuery(text))
	}
	if g.once(3) {
		parameters = append(parameters, "fieldSelector="+escapeQuery(fields[g.r.IntN(len(fields))]))
	}
	return strings.Join(parameters, "&")
}

// escapeQuery escapes a value but keeps references.
func escapeQuery(text string) string {
	return strings.NewReplacer("%24%7B", "${", "%7D", "}").Replace(url.QueryEscape(text))
}

func join(parameters ...string) string {
	return strings.Join(slices.DeleteFunc(parameters, func(p string) bool { return p == "" }), "&")
}

func (g *generator) list(k *kind) {
	op := Operation{Method: http.MethodGet, Path: k.collection(g.version(k)), Query: g.selector(k, false)}
	switch g.r.IntN(12) {
	case 0, 1:
		op.Query = join(op.Query, "limit="+g.choose("1", "2", "3", "100", "-1", "x"))
		g.lists[k] = append(g.lists[k], len(g.ops))
	case 2, 3:
		if pages := g.lists[k]; len(pages) > 0 {
			page := pages[len(pages)-1]
			op.Path = g.ops[page].Path
			op.Query = join("limit=2", fmt.Sprintf("continue=${continue:%d}", page))
			if _, selector, found := strings.Cut(g.ops[page].Query, "labelSelector="); found {
				op.Query += "&labelSelector=" + strings.Split(selector, "&")[0]
			}
			g.lists[k] = append(g.lists[k], len(g.ops))
		}
	case 4:
		op.Query = join(op.Query, "resourceVersion=0", g.choose("", "resourceVersionMatch=NotOlderThan", "resourceVersionMatch=Exact"))
	case 5:
		op.Query = join(op.Query, "resourceVersion=${rv:"+k.key(k.version, k.objectName(0))+"}", g.choose("resourceVersionMatch=NotOlderThan", "resourceVersionMatch=Exact", "resourceVersionMatch=Wrong", ""))
	case 6:
		op.Query = join(op.Query, g.choose("continue=garbage", "resourceVersion=abc", "resourceVersionMatch=Exact", "timeoutSeconds=x", "limit=1&continue=eyJ2Ijoi"))
	case 7:
		op.Accept = tableAccept
	case 8:
		op.Accept = listAccept
	case 9:
		if k.namespaced {
			op.Path = strings.Replace(op.Path, "${ns}", "${ns}-empty", 1)
		}
	}
	g.add(op)
}

func (g *generator) watch(k *kind) {
	version := k.version
	sentinel := g.object(k, "")
	if len(k.bodies) > 0 {
		var body map[string]any
		_ = json.Unmarshal([]byte(k.bodies[0]), &body)
		body["apiVersion"], body["kind"], body["metadata"] = k.apiVersion(version), k.name, map[string]any{}
		sentinel = body
	}
	labels := map[string]any{"app": "web", "tier": "front"}
	if !k.namespaced {
		labels["run"] = "${p}"
	}
	sentinel["metadata"] = map[string]any{"name": strings.TrimSuffix(k.objectName(0), "object-0") + fmt.Sprintf("sentinel-%d", len(g.ops)), "labels": labels}
	op := Operation{
		Method: http.MethodGet, Path: k.collection(version), Watch: 1 + g.r.IntN(60), Sentinel: encode(sentinel), SentinelPath: k.collection(version),
	}
	op.Shown = g.r.IntN(4) > 0
	parameters := []string{"watch=" + g.choose("1", "true"), g.selector(k, op.Shown)}
	rv := "${rv:" + k.key(version, k.objectName(g.r.IntN(names))) + "}"
	switch g.r.IntN(8) {
	case 0:
		parameters = append(parameters, "resourceVersion=0")
	case 1, 2, 3:
		parameters = append(parameters, "resourceVersion="+rv)
	case 4:
		parameters = append(parameters, "sendInitialEvents=true", "resourceVersionMatch=NotOlderThan", "allowWatchBookmarks=true")
	case 5:
		parameters = append(parameters, g.choose("resourceVersion=abc", "sendInitialEvents=true", "sendInitialEvents=true&resourceVersionMatch=Exact", "timeoutSeconds=x", "resourceVersionMatch=NotOlderThan", "sendInitialEvents=false&resourceVersion="+rv+"&resourceVersionMatch=NotOlderThan"))
	case 6:
		op.Accept = g.choose(tableAccept, partialAccept)
		parameters = append(parameters, "resourceVersion="+rv)
	}
	op.Query = join(parameters...)
	g.add(op)
}

// update replaces an object: the last seen one with changes or a new one, with a fresh, old, wrong or no resourceVersion.
func (g *generator) update(k *kind) {
	name := g.name(k)
	key := k.key(k.version, name)
	metadata := map[string]any{"name": name, "labels": g.labels(k)}
	op := Operation{Method: http.MethodPut, Path: k.collection(k.version) + "/" + name, Query: g.options(k), ContentType: jsonType, Accept: g.accept()}
	var body map[string]any
	if g.once(3) {
		body = g.object(k, name)
		if g.once(2) {
			mergeMaps(body, map[string]any{"metadata": map[string]any{"resourceVersion": "${rv:" + key + "}"}})
		}
	} else {
		op.Base = "${ref:" + key + "}"
		body = map[string]any{"metadata": metadata}
		if g.once(3) {
			change := k.body(g.r)
			delete(change, "apiVersion")
			delete(change, "kind")
			body = mergeMaps(body, change)
		}
		if g.once(10) {
			metadata["resourceVersion"] = g.choose("${oldrv:"+key+"}", "1", "abc")
		}
		if g.once(8) {
			metadata["finalizers"] = []any{}
		}
	}
	op.Base = strings.TrimSuffix(strings.TrimPrefix(op.Base, "${ref:"), "}")
	op.Base = strings.NewReplacer("<ns>", "${ns}", "<p>", "${p}").Replace(op.Base)
	op.Body = g.malformed(encode(g.change(k, body)))
	g.add(op)
}

// status updates or patches the status, together with parts that must stay.
func (g *generator) status(k *kind) {
	name := g.name(k)
	status := map[string]any{"phase": g.choose("Ready", "Broken"), "replicas": g.r.IntN(5)}
	if k.class == "builtin" {
		status = map[string]any{"conditions": []any{}}
	} else if schema, isMap := k.schema["properties"].(map[string]any); isMap && g.once(2) {
		if below, isMap := schema["status"].(map[string]any); isMap {
			if drawn, isMap := (&schemaSampler{r: g.r}).value(below, 1).(map[string]any); isMap {
				status = drawn
			}
		}
	}
	body := map[string]any{"status": status, "metadata": map[string]any{"labels": map[string]any{"changed": "by-status"}}}
	op := Operation{Path: k.collection(k.version) + "/" + name + "/status", Query: g.options(k)}
	if g.once(2) {
		op.Method, op.ContentType, op.Body = http.MethodPatch, mergePatch, encode(body)
	} else {
		op.Method, op.ContentType, op.Body = http.MethodPut, jsonType, encode(body)
		op.Base = strings.NewReplacer("<ns>", "${ns}", "<p>", "${p}").Replace(k.key(k.version, name))
	}
	g.add(op)
}

func (g *generator) scale(k *kind) {
	name := g.name(k)
	path := k.collection(k.version) + "/" + name + "/scale"
	switch g.r.IntN(4) {
	case 0:
		g.add(Operation{Method: http.MethodGet, Path: path})
	case 1:
		body := map[string]any{
			"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": map[string]any{"replicas": g.r.IntN(6) - 1},
			"metadata": map[string]any{"name": name, "namespace": "${ns}"},
		}
		g.add(Operation{Method: http.MethodPut, Path: path, ContentType: jsonType, Body: encode(body), Query: g.options(k)})
	default:
		g.add(Operation{Method: http.MethodPatch, Path: path, ContentType: mergePatch, Body: fmt.Sprintf(`{"spec":{"replicas":%d}}`, g.r.IntN(6)-1), Query: g.options(k)})
	}
}

func (g *generator) patch(k *kind, contentType, body string, parameters ...string) {
	g.patchNamed(k, g.name(k), contentType, body, parameters...)
}

func (g *generator) patchNamed(k *kind, name, contentType, body string, parameters ...string) {
	g.add(Operation{
		Method: http.MethodPatch, Path: k.collection(k.version) + "/" + name, Query: g.options(k, parameters...), ContentType: contentType,
		Body: g.malformed(body), Accept: g.accept(),
	})
}

func (g *generator) patchJSON(k *kind) {
	path := g.choose("/metadata/labels/app", "/metadata/annotations", "/metadata/labels/new~1key", "/spec/nothing", "/metadata/finalizers", "/spec", "/metadata/labels")
	value := []any{"web", map[string]any{"a": "b"}, []any{}, nil, 5, []any{"diff.example/hold"}}[g.r.IntN(6)]
	step := map[string]any{"op": g.choose("add", "add", "replace", "remove", "test", "copy", "move", "wrong"), "path": path, "value": value}
	if step["op"] == "copy" || step["op"] == "move" {
		step["from"] = g.choose("/metadata/labels/app", "/metadata/absent")
	}
	steps := []any{step}
	if g.once(3) {
		steps = append(steps, map[string]any{"op": "add", "path": "/metadata/labels/second", "value": "x"})
	}
	g.patch(k, jsonPatch, encode(steps))
}

func (g *generator) mergeBody(k *kind) map[string]any {
	switch g.r.IntN(6) {
	case 0:
		return map[string]any{"metadata": g.oddMetadata()}
	case 1:
		return k.brokenPatch(g.r)
	case 2:
		return map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": nil}, "annotations": map[string]any{"note": g.choose("x", "y")}}}
	case 3:
		return map[string]any{"metadata": map[string]any{"finalizers": nil}}
	case 4:
		body := k.body(g.r)
		delete(body, "apiVersion")
		delete(body, "kind")
		return body
	}
	return map[string]any{"metadata": map[string]any{"labels": g.labels(k)}}
}

func (g *generator) patchMerge(k *kind) { g.patch(k, mergePatch, encode(g.mergeBody(k))) }

func (g *generator) patchStrategic(k *kind) {
	body := g.mergeBody(k)
	if g.once(4) {
		body = map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": g.choose("app", "side"), "image": "other:1"},
		}}}}}
	}
	if g.once(6) {
		body["$patch"] = g.choose("replace", "delete", "wrong")
	}
	g.patch(k, strategic, encode(body))
}

// apply sends a server-side apply of one of two managers, for new and for existing objects.
func (g *generator) apply(k *kind) {
	name := g.name(k)
	object := g.object(k, name)
	if g.once(2) {
		object = map[string]any{"apiVersion": k.apiVersion(k.version), "kind": k.name, "metadata": map[string]any{"name": name, "labels": g.labels(k)}}
	}
	parameters := []string{"fieldManager=" + g.choose("applier", "applier", "other")}
	if g.once(3) {
		parameters = append(parameters, "force="+g.choose("true", "true", "false"))
	}
	if g.once(25) {
		parameters = nil
	}
	op := Operation{
		Method: http.MethodPatch, Path: k.collection(k.version) + "/" + name, ContentType: applyPatch, Accept: g.accept(),
		Body: g.malformed(encode(g.change(k, object))),
	}
	if g.once(10) {
		parameters = append(parameters, "dryRun=All")
	}
	if g.once(5) {
		parameters = append(parameters, "fieldValidation="+g.choose("Strict", "Warn", "Ignore"))
	}
	op.Query = strings.Join(parameters, "&")
	g.add(op)
}

func (g *generator) deleteOptions(key string) (query, body string) {
	switch g.r.IntN(12) {
	case 0:
		return "propagationPolicy=" + g.choose("Foreground", "Background", "Orphan", "Wrong"), ""
	case 1:
		return "gracePeriodSeconds=" + g.choose("0", "5", "-1", "x"), ""
	case 2:
		return "", `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"` + g.choose("${uid:"+key+"}", "wrong") + `"}}`
	case 3:
		return "", `{"preconditions":{"resourceVersion":"` + g.choose("${rv:"+key+"}", "1") + `"}}`
	case 4:
		return "dryRun=All", ""
	case 5:
		return "", `{"propagationPolicy":"` + g.choose("Foreground", "Orphan", "Background") + `","gracePeriodSeconds":0}`
	case 6:
		return "", g.choose(`{"orphanDependents":true}`, `{"orphanDependents":true,"propagationPolicy":"Orphan"}`, `{`, `{"unknownField":1}`)
	}
	return "", ""
}

func (g *generator) delete(k *kind) {
	name := g.name(k)
	op := Operation{Method: http.MethodDelete, Path: k.collection(k.version) + "/" + name, Accept: g.accept()}
	op.Query, op.Body = g.deleteOptions(k.key(k.version, name))
	if op.Body != "" {
		op.ContentType = jsonType
	}
	if g.once(30) {
		op.Path += "/status"
	}
	g.add(op)
}

func (g *generator) deleteCollection(k *kind) {
	op := Operation{Method: http.MethodDelete, Path: k.collection(k.version)}
	selector := g.choose("app=none", "app=web,tier=back", "tier=front,app=db", "app in (cache),!tier", "app=web", "bad key=x")
	if !k.namespaced {
		selector = "run=${p}," + selector
	}
	op.Query = join("labelSelector="+escapeQuery(selector), g.choose("", "", "", "dryRun=All", "propagationPolicy=Foreground", "fieldSelector=spec.nothing%3Dx", "gracePeriodSeconds=0"))
	g.add(op)
}
