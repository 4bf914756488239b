package difftest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/anykind/anykind/apitest/internal/nested"
)

func (g *generator) create(k *kind) {
	version := g.version(k)
	object := g.object(k, k.objectName(g.r.IntN(names)))
	object["apiVersion"] = k.apiVersion(version)
	if g.once(15) {
		metadata := nested.Map(object, "metadata")
		delete(metadata, "name")
		delete(metadata, "finalizers")
		metadata["generateName"] = strings.TrimSuffix(k.objectName(0), "0") + "generated-"
	}
	path := k.collection(version)
	if g.fault == faultState && g.once(2) {
		path = strings.Replace(path, "${ns}", "${ns}-absent", 1)
	}
	g.add(Operation{
		Method: http.MethodPost, Path: path, Query: g.options(), ContentType: g.mediaType(jsonType),
		Body: g.malformed(encode(g.change(k, object, true))), Accept: g.accept(),
	})
}

// update replaces an object: the last seen object with changes, or a new object. Its resourceVersion is fresh, old, wrong or
// missing.
func (g *generator) update(k *kind) {
	name := g.name(k)
	key := k.key(k.version, name)
	metadata := map[string]any{"name": name, "labels": g.labels(k)}
	op := Operation{Method: http.MethodPut, Path: k.collection(k.version) + "/" + name, Query: g.options(), ContentType: g.mediaType(jsonType), Accept: g.accept()}
	var body map[string]any
	if g.once(3) {
		body = g.object(k, name)
		if g.once(2) {
			mergeMaps(body, map[string]any{"metadata": map[string]any{"resourceVersion": "${rv:" + key + "}"}})
		}
	} else {
		op.Base = base(k, name)
		body = map[string]any{"metadata": metadata}
		if g.once(3) {
			change := k.body(g.r)
			delete(change, "apiVersion")
			delete(change, "kind")
			body = mergeMaps(body, change)
		}
		if g.once(8) {
			metadata["finalizers"] = []any{}
		}
	}
	if g.fault == faultState {
		switch g.r.IntN(3) {
		case 0:
			mergeMaps(body, map[string]any{"metadata": map[string]any{"resourceVersion": g.choose("${oldrv:"+key+"}", "1", "abc")}})
		case 1:
			op.OwnView = true
		default:
			mergeMaps(body, map[string]any{"metadata": map[string]any{"uid": "11111111-2222-3333-4444-555555555555"}})
		}
	}
	op.Body = g.malformed(encode(g.change(k, body, true)))
	g.add(op)
}

// status updates or patches the status, together with fields to be ignored.
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
	op := Operation{Path: k.collection(k.version) + "/" + name + "/status", Query: g.options(), Accept: g.accept()}
	if g.fault == faultState && g.once(2) {
		mergeMaps(body, map[string]any{"metadata": map[string]any{"resourceVersion": g.choose("${oldrv:"+k.key(k.version, name)+"}", "1")}})
	}
	if g.fault == faultBody && g.once(2) {
		body["status"] = []any{"text", 5, []any{}, nil, map[string]any{"unknownField": 1, "conditions": "x"}}[g.r.IntN(5)]
	} else {
		body = g.change(k, body, false)
	}
	op.Body = g.malformed(encode(body))
	if g.once(2) {
		op.Method = http.MethodPatch
		op.ContentType = g.mediaType(mergePatch)
	} else {
		op.Method = http.MethodPut
		op.ContentType = g.mediaType(jsonType)
		op.Base = base(k, name)
	}
	g.add(op)
}

func (g *generator) scale(k *kind) {
	name := g.name(k)
	op := Operation{Path: k.collection(k.version) + "/" + name + "/scale"}
	replicas := any(g.r.IntN(5))
	if g.fault == faultBody {
		replicas = []any{-1, "three", 1.5, nil, 1 << 40, map[string]any{}}[g.r.IntN(6)]
	}
	body := map[string]any{"spec": map[string]any{"replicas": replicas}}
	if g.fault == faultMetadata {
		body["metadata"] = g.oddMetadata()
	}
	if g.fault == faultState && g.once(2) {
		body["metadata"] = map[string]any{"resourceVersion": g.choose("1", "abc", "${rv:"+k.key(k.version, name)+"}")}
	}
	switch {
	case g.fault == faultNone && g.once(4):
		op.Method = http.MethodGet
		g.add(op)
		return
	case g.once(3):
		whole := map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": map[string]any{"name": name, "namespace": "${ns}"}}
		if !k.namespaced {
			whole["metadata"] = map[string]any{"name": name}
		}
		if g.fault == faultBody && g.once(6) {
			whole["apiVersion"] = g.choose("apps/v1", "autoscaling/v9", "")
		}
		op.Method = http.MethodPut
		op.ContentType = g.mediaType(jsonType)
		op.Body = g.malformed(encode(mergeMaps(whole, body)))
	case g.once(3):
		op.Method = http.MethodPatch
		op.ContentType = g.mediaType(jsonPatch)
		op.Body = g.malformed(encode([]any{map[string]any{"op": "replace", "path": "/spec/replicas", "value": replicas}}))
	default:
		op.Method = http.MethodPatch
		op.ContentType = g.mediaType(mergePatch)
		op.Body = g.malformed(encode(body))
	}
	op.Query = g.options()
	g.add(op)
}

func (g *generator) patch(k *kind, contentType, body string) {
	name := g.name(k)
	g.add(Operation{
		Method: http.MethodPatch, Path: k.collection(k.version) + "/" + name, Query: g.options(), ContentType: g.mediaType(contentType),
		Body: g.malformed(strings.ReplaceAll(body, "KEY", k.key(k.version, name))), Accept: g.accept(),
	})
}

func (g *generator) patchJSON(k *kind) {
	path := g.choose("/metadata/labels/app", "/metadata/annotations", "/metadata/labels/new~1key", "/spec/nothing", "/metadata/finalizers", "/spec", "/metadata/labels")
	value := []any{"web", map[string]any{"a": "b"}, []any{}, nil, 5, []any{"diff.example/hold"}}[g.r.IntN(6)]
	step := map[string]any{"op": g.choose("add", "add", "replace", "remove", "test", "copy", "move"), "path": path, "value": value}
	if g.fault == faultNone {
		step = map[string]any{"op": "add", "path": "/metadata/labels", "value": g.labels(k)}
		if g.once(3) {
			step = map[string]any{"op": "replace", "path": "/metadata/labels/app", "value": g.choose("web", "db", "cache")}
		}
	}
	if step["op"] == "copy" || step["op"] == "move" {
		step["from"] = g.choose("/metadata/labels/app", "/metadata/absent")
	}
	steps := []any{step}
	switch g.fault {
	case faultBody:
		if g.once(2) {
			step["op"] = g.choose("wrong", "", "ADD")
		}
	case faultMetadata:
		for name, value := range g.oddMetadata() {
			steps = append(steps, map[string]any{"op": "add", "path": "/metadata/" + name, "value": value})
		}
	case faultState:
		steps = []any{map[string]any{"op": "add", "path": "/metadata/resourceVersion", "value": g.choose("${oldrv:KEY}", "1", "${rv:KEY}")}, step}
	}
	if g.once(3) {
		steps = append(steps, map[string]any{"op": "add", "path": "/metadata/labels/second", "value": "x"})
	}
	g.patch(k, jsonPatch, encode(steps))
}

// mergeBody returns a merge patch. References in it have the literal KEY as the object path.
func (g *generator) mergeBody(k *kind) map[string]any {
	switch g.fault {
	case faultMetadata:
		return map[string]any{"metadata": g.oddMetadata()}
	case faultBody:
		return k.brokenPatch(g.r)
	case faultState:
		return map[string]any{"metadata": map[string]any{"labels": g.labels(k), "resourceVersion": g.choose("${oldrv:KEY}", "1", "abc")}}
	}
	switch g.r.IntN(4) {
	case 0:
		return map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": nil}, "annotations": map[string]any{"note": g.choose("x", "y")}}}
	case 1:
		return map[string]any{"metadata": map[string]any{"finalizers": nil}}
	case 2:
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
	if g.once(4) && g.fault == faultNone {
		body = map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": g.choose("app", "side"), "image": "other:1"},
		}}}}}
	}
	if g.once(6) && g.fault == faultBody {
		body["$patch"] = g.choose("replace", "delete", "wrong")
	}
	g.patch(k, strategic, encode(body))
}

// apply sends a server-side apply by either of two managers, for new and existing objects.
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
	if g.once(10) {
		parameters = append(parameters, "dryRun=All")
	}
	if g.once(5) {
		parameters = append(parameters, "fieldValidation="+g.choose("Strict", "Warn", "Ignore"))
	}
	switch {
	case g.fault == faultState && g.once(2):
		mergeMaps(object, map[string]any{"metadata": map[string]any{"resourceVersion": g.choose("1", "${oldrv:"+k.key(k.version, name)+"}")}})
	case g.fault == faultOptions && g.once(4):
		parameters = nil
	case g.fault == faultOptions:
		parameters = append(parameters, g.choose("force=x", "fieldValidation=Wrong", "dryRun=Some", "fieldManager="+strings.Repeat("m", 130), "pretty=x"))
	}
	mediaType := g.mediaType(applyPatch)
	body := g.change(k, object, true)
	if metadata, isMap := body["metadata"].(map[string]any); isMap && metadata["selfLink"] != nil {
		// With a selfLink, a no-op apply is a write if a second has passed since the last write.
		mergeMaps(metadata, map[string]any{"annotations": map[string]any{"operation": fmt.Sprint(len(g.ops))}})
	}
	g.add(Operation{
		Method: http.MethodPatch, Path: k.collection(k.version) + "/" + name, Query: strings.Join(parameters, "&"), ContentType: mediaType,
		Body: g.malformed(encode(body)), Accept: g.accept(),
	})
}

// deleteOptions returns the options of a deletion as parameters or as a body.
func (g *generator) deleteOptions(key string) (query, body string) {
	switch g.fault {
	case faultBody:
		return "", g.choose(`{`, `{"unknownField":1}`, `[]`, `"x"`, `{"kind":"Wrong","apiVersion":"v1"}`, `{"orphanDependents":true,"propagationPolicy":"Orphan"}`,
			`{"propagationPolicy":"Wrong"}`, `{"gracePeriodSeconds":"x"}`, `{"dryRun":["Some"]}`, `{"preconditions":"x"}`, `null`)
	case faultOptions:
		return g.choose("propagationPolicy=Wrong", "gracePeriodSeconds=x", "dryRun=Some", "orphanDependents=x", "propagationPolicy=Orphan&orphanDependents=true", "pretty=x",
			"gracePeriodSeconds=-1"), ""
	case faultState:
		return "", g.choose(`{"preconditions":{"uid":"wrong"}}`, `{"preconditions":{"resourceVersion":"1"}}`, `{"preconditions":{"resourceVersion":"${oldrv:`+key+`}"}}`)
	}
	switch g.r.IntN(10) {
	case 0:
		return "propagationPolicy=" + g.choose("Foreground", "Background", "Orphan"), ""
	case 1:
		return "gracePeriodSeconds=" + g.choose("0", "5"), ""
	case 2:
		return "", `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"${uid:` + key + `}"}}`
	case 3:
		return "", `{"preconditions":{"resourceVersion":"${rv:` + key + `}"}}`
	case 4:
		return "dryRun=All", ""
	case 5:
		return "", `{"propagationPolicy":"` + g.choose("Foreground", "Orphan", "Background") + `","gracePeriodSeconds":0}`
	case 6:
		return "", `{"orphanDependents":true}`
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
	if g.fault == faultState && g.once(6) {
		op.Path += "/status"
	}
	g.add(op)
}

func (g *generator) deleteCollection(k *kind) {
	op := Operation{Method: http.MethodDelete, Path: k.collection(k.version)}
	selector := g.choose("app=none", "app=web,tier=back", "tier=front,app=db", "app in (cache),!tier", "app=web")
	field := ""
	switch g.fault {
	case faultOptions:
		if g.once(2) {
			selector = g.choose("bad key=x", "app in (")
		} else {
			op.Query = g.choose("dryRun=Some", "propagationPolicy=Wrong", "gracePeriodSeconds=x", "")
			field = "spec.nothing=x"
		}
	case faultBody:
		_, op.Body = g.deleteOptions("")
		op.ContentType = jsonType
	case faultState:
		op.Path = strings.Replace(op.Path, "${ns}", "${ns}-"+g.choose("empty", "absent"), 1)
	default:
		op.Query = g.choose("", "", "", "dryRun=All", "propagationPolicy=Foreground", "gracePeriodSeconds=0")
	}
	if !k.namespaced {
		selector = "run=${p}," + selector
	}
	op.Query = join(fmt.Sprintf("labelSelector=%s", escapeQuery(selector)), parameter("fieldSelector", field), op.Query)
	g.add(op)
}
