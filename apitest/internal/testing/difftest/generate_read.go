package difftest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

func (g *generator) get(k *kind) {
	version := g.version(k)
	op := Operation{Method: http.MethodGet, Path: k.collection(version) + "/" + g.name(k)}
	switch g.r.IntN(8) {
	case 0:
		op.Accept = tableAccept
	case 1:
		op.Accept = partialAccept
	case 2:
		op.Query = "resourceVersion=" + g.choose("0", "${rv:"+k.key(version, k.objectName(0))+"}")
		op.Current = k.collection(version)
	case 3:
		op.Path += "/" + g.choose("status", "scale", "status")
	case 4:
		op.Accept = tableAccept
		op.Query = "includeObject=" + g.choose("None", "Object", "Metadata")
	}
	switch {
	case g.fault == faultOptions && g.once(3):
		op.Accept = g.choose("text/html", "application/json;as=Wrong;v=v1;g=meta.k8s.io", "application/json;as=Table;v=v9;g=meta.k8s.io")
	case g.fault == faultOptions:
		op.Accept = g.choose("", tableAccept)
		op.Query = g.choose("includeObject=Wrong", "resourceVersion=abc", "resourceVersion=-1", "pretty=x", "unknown=x")
	case g.fault == faultState && g.once(3):
		op.Path = k.collection(version) + "/" + k.objectName(0) + "/nothing"
	case g.fault == faultState && k.namespaced && g.once(3):
		op.Path = strings.Replace(op.Path, "${ns}", "${ns}-empty", 1)
	}
	g.add(op)
}

// selection is a label and a field selector. To match it, a sentinel needs the labels or the name.
type selection struct {
	label, field string
	labels       map[string]any
	name         string
}

func selections(k *kind) []selection {
	labels := func(pairs ...string) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	all := []selection{
		{labels: labels()}, {labels: labels()}, {labels: labels("app", "db")},
		{label: "app=web", labels: labels("app", "web")}, {label: "app in (web,cache)", labels: labels("app", "cache")},
		{label: "tier", labels: labels("tier", "x")}, {label: "app!=db", labels: labels()}, {label: "!tier", labels: labels("app", "web")},
		{label: "tier=front,app=web", labels: labels("tier", "front", "app", "web")}, {label: "app=none", labels: labels("app", "none")},
		{label: "!missing", labels: labels()}, {label: "tier notin (back)", labels: labels("tier", "front")},
		{field: "metadata.name!=absent", labels: labels()}, {field: "metadata.name=" + k.objectName(1), labels: labels(), name: k.objectName(1)},
		{field: "metadata.name!=absent", label: "app=web", labels: labels("app", "web")},
	}
	if k.namespaced {
		all = append(all, selection{field: "metadata.namespace=${ns}", labels: labels()})
	}
	return all
}

// badSelectors returns parameters that are rejected or select nothing.
func badSelectors(k *kind) []string {
	bad := []string{
		"labelSelector=" + escapeQuery("app in ("), "labelSelector=" + escapeQuery("bad key=x"), "labelSelector=%3Dx", "labelSelector=" + escapeQuery("a=b=c"),
		"fieldSelector=" + escapeQuery("spec.nothing=x"), "fieldSelector=metadata.name", "fieldSelector=" + escapeQuery("metadata.labels=x"),
		"fieldSelector=" + escapeQuery("spec.size>small"), "timeoutSeconds=x", "limit=x", "resourceVersion=abc",
	}
	if !k.namespaced {
		bad = append(bad, "fieldSelector="+escapeQuery("metadata.namespace=elsewhere"))
	}
	return bad
}

// query returns the parameters of a selection. For cluster-scoped kinds they select objects of the run only.
func (s selection) query(k *kind) string {
	label := s.label
	if !k.namespaced {
		label = strings.TrimSuffix("run=${p},"+label, ",")
	}
	return join(parameter("labelSelector", label), parameter("fieldSelector", s.field))
}

func parameter(name, value string) string {
	if value == "" {
		return ""
	}
	return name + "=" + escapeQuery(value)
}

// escapeQuery escapes a value except for references.
func escapeQuery(text string) string {
	return strings.NewReplacer("%24%7B", "${", "%7D", "}").Replace(url.QueryEscape(text))
}

func join(parameters ...string) string {
	return strings.Join(slices.DeleteFunc(parameters, func(p string) bool { return p == "" }), "&")
}

func (g *generator) list(k *kind) {
	all := selections(k)
	op := Operation{Method: http.MethodGet, Path: k.collection(g.version(k)), Query: all[g.r.IntN(len(all))].query(k)}
	key := k.key(k.version, k.objectName(g.r.IntN(names)))
	switch g.fault {
	case faultOptions:
		bad := append(badSelectors(k), "resourceVersionMatch=Exact", "resourceVersion=0&resourceVersionMatch=Exact", "continue=garbage", "limit=1&continue=eyJ2Ijoi",
			"resourceVersion=${rv:"+key+"}&resourceVersionMatch=Wrong", "limit=-1", "sendInitialEvents=true", "pretty=x", "watch=false")
		op.Query = join(g.own(k), bad[g.r.IntN(len(bad))])
		if !k.namespaced && strings.Contains(op.Query, "&labelSelector") {
			op.Query = strings.TrimPrefix(op.Query, g.own(k)+"&")
		}
		g.add(op)
		return
	case faultState:
		switch g.r.IntN(3) {
		case 0:
			op.Query = join(op.Query, "resourceVersion=${oldrv:"+key+"}", "resourceVersionMatch=Exact")
		case 1:
			g.continued(k, &op)
		default:
			op.Path = strings.Replace(op.Path, "${ns}", "${ns}-"+g.choose("empty", "absent"), 1)
		}
		g.add(op)
		return
	}
	switch g.r.IntN(10) {
	case 0, 1:
		if !k.namespaced { // objects of concurrent runs may add pages
			op.Query = join(op.Query, "limit=1000")
			break
		}
		op.Query = join(op.Query, "limit="+g.choose("1", "2", "3", "100"))
		g.lists[k] = append(g.lists[k], len(g.ops)+1)
	case 2:
		g.continued(k, &op)
	case 3:
		op.Query = join(op.Query, "resourceVersion=0", g.choose("", "resourceVersionMatch=NotOlderThan"))
		op.Current = k.collection(k.version)
	case 4:
		op.Query = join(op.Query, "resourceVersion=${rv:"+key+"}", g.choose("resourceVersionMatch=NotOlderThan", "resourceVersionMatch=Exact", ""))
		op.Current = k.collection(k.version)
	case 5:
		op.Accept = tableAccept
	case 6:
		op.Accept = listAccept
	}
	g.add(op)
}

// continued makes a list the next page of an earlier list, if there is any.
func (g *generator) continued(k *kind, op *Operation) {
	pages := g.lists[k]
	if len(pages) == 0 {
		return
	}
	page := g.ops[pages[len(pages)-1]-1]
	op.Path = page.Path
	op.Query = join("limit=2", fmt.Sprintf("continue=${continue:%d}", page.ID))
	for _, part := range strings.Split(page.Query, "&") {
		if strings.HasPrefix(part, "labelSelector=") || strings.HasPrefix(part, "fieldSelector=") {
			op.Query += "&" + part
		}
	}
	g.lists[k] = append(pages, len(g.ops)+1)
}

func (g *generator) watch(k *kind) {
	all := selections(k)
	selected := all[g.r.IntN(len(all))]
	op := Operation{Method: http.MethodGet, Path: k.collection(k.version), Current: k.collection(k.version)}
	parameters := []string{"watch=" + g.choose("1", "true"), selected.query(k)}
	key := k.key(k.version, k.objectName(g.r.IntN(names)))
	rv := "${rv:" + key + "}"
	switch g.fault {
	case faultOptions:
		bad := append(badSelectors(k), "sendInitialEvents=true", "sendInitialEvents=true&resourceVersionMatch=Exact", "resourceVersionMatch=NotOlderThan", "sendInitialEvents=x")
		parameters = []string{"watch=1", bad[g.r.IntN(len(bad))]}
		if !strings.Contains(parameters[1], "labelSelector") {
			parameters = append(parameters, g.own(k))
		}
		if g.once(4) {
			op.Accept = g.choose("text/html", "application/json;as=Wrong;v=v1;g=meta.k8s.io")
			parameters = parameters[:1]
		}
	case faultState:
		parameters = append(parameters, "resourceVersion=${oldrv:"+key+"}")
	case faultNone:
		switch g.r.IntN(8) {
		case 0:
			parameters = append(parameters, "resourceVersion=0")
		case 1, 2, 3:
			parameters = append(parameters, "resourceVersion="+rv)
		case 4:
			parameters = append(parameters, "sendInitialEvents=true", "resourceVersionMatch=NotOlderThan", "allowWatchBookmarks=true")
		case 5:
			parameters = append(parameters, "sendInitialEvents=false&resourceVersion="+rv+"&resourceVersionMatch=NotOlderThan")
		case 6:
			op.Accept = g.choose(tableAccept, partialAccept)
			parameters = append(parameters, "resourceVersion="+rv)
		}
	}
	op.Query = join(parameters...)
	g.sentinel(&op, k, selected.labels, selected.name)
	g.add(op)
}
