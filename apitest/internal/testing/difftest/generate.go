package difftest

import (
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

// names is the number of object names per kind. It is small, so that operations hit the same objects.
const names = 5

// task is an operation to draw: a verb, a class of kinds and a class of faults.
type task struct{ class, verb, fault string }

// generator draws operations.
type generator struct {
	r     *rand.Rand
	fault string
	ops   []Operation
	lists map[*kind][]int // IDs of paged lists
}

// verb has the weight of a verb in the draw, and its classes of faults.
type verb struct {
	weight int
	faults []string
	draw   func(g *generator, k *kind)
}

// verbs returns all verbs.
func verbs() map[string]verb {
	all := []string{faultBody, faultMetadata, faultOptions, faultState}
	reads := []string{faultOptions, faultState}
	deletes := []string{faultBody, faultOptions, faultState}
	return map[string]verb{
		"create":           {2, all, (*generator).create},
		"get":              {1, reads, (*generator).get},
		"list":             {1, reads, (*generator).list},
		"watch":            {1, reads, (*generator).watch},
		"update":           {1, all, (*generator).update},
		"status":           {1, all, (*generator).status},
		"scale":            {1, all, (*generator).scale},
		"patch-json":       {1, all, (*generator).patchJSON},
		"patch-merge":      {1, all, (*generator).patchMerge},
		"patch-strategic":  {1, all, (*generator).patchStrategic},
		"apply":            {2, all, (*generator).apply},
		"delete":           {1, deletes, (*generator).delete},
		"deletecollection": {1, deletes, (*generator).deleteCollection},
	}
}

// goodShare is the number of operations without a fault per operation with a fault of a class.
const goodShare = 4

// tasks returns count tasks of a class in random order. Each verb has its weight; each of its faults has an equal share.
func tasks(r *rand.Rand, class string, count int) []task {
	var round []task
	all := verbs()
	for _, name := range sortedKeys(all) {
		for range all[name].weight {
			for range goodShare {
				round = append(round, task{class, name, faultNone})
			}
			for _, fault := range all[name].faults {
				round = append(round, task{class, name, fault})
			}
		}
	}
	drawn := make([]task, 0, count)
	for len(drawn) < count {
		drawn = append(drawn, round[:min(len(round), count-len(drawn))]...)
		r.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
	}
	r.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	return drawn
}

// generate draws the operations of the tasks, and a final list of each kind. With outage, the server is compacted and restarted
// in the middle.
func generate(r *rand.Rand, kinds []*kind, todo []task, outage bool) []Operation {
	g := &generator{r: r, lists: map[*kind][]int{}}
	for i, one := range todo {
		if outage && i == len(todo)/2 {
			g.outage()
		}
		g.draw(one, pick(r, kinds, func(k *kind) bool {
			switch one.verb {
			case "status":
				return k.class == one.class && k.status
			case "scale":
				return k.class == one.class && k.scale
			case "deletecollection":
				return k.class == one.class && k.name != "Namespace"
			}
			return k.class == one.class
		}))
	}
	for _, k := range kinds {
		g.add(Operation{Class: k.class, Verb: "final", Kind: k.name, Fault: faultNone, Method: http.MethodGet, Path: k.collection(k.version), Query: g.own(k)})
	}
	return g.ops
}

func (g *generator) draw(one task, k *kind) {
	before := len(g.ops)
	g.fault = one.fault
	verbs()[one.verb].draw(g, k)
	for i := before; i < len(g.ops); i++ {
		op := &g.ops[i]
		op.Class = k.class
		op.Verb = one.verb
		op.Kind = k.name
		op.Fault = one.fault
		if op.Method != http.MethodGet && g.once(3) {
			op.Writer = g.choose("alice", "bob")
		}
	}
}

// outage keeps earlier paged lists: continuing them gets 410.
func (g *generator) outage() {
	g.add(Operation{Class: "all", Verb: "compact", Fault: faultNone, Method: methodCompact})
	g.add(Operation{Class: "all", Verb: "restart", Fault: faultNone, Method: methodRestart})
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

// add adds an operation. IDs begin with 1.
func (g *generator) add(op Operation) {
	op.ID = len(g.ops) + 1
	g.ops = append(g.ops, op)
}

// once returns true with probability 1/n.
func (g *generator) once(n int) bool { return g.r.IntN(n) == 0 }

func (g *generator) choose(values ...string) string { return values[g.r.IntN(len(values))] }

// own returns the selector that limits lists of cluster-scoped kinds to objects of the run.
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

// name returns the name of an object of the kind. With a fault of state, it is often a name that never exists.
func (g *generator) name(k *kind) string {
	if g.fault == faultState && g.once(3) {
		return strings.TrimSuffix(k.objectName(0), "object-0") + "absent"
	}
	return k.objectName(g.r.IntN(names))
}

// base returns the path of an object with references.
func base(k *kind, name string) string {
	return strings.NewReplacer("<ns>", "${ns}", "<p>", "${p}").Replace(k.key(k.version, name))
}

// sentinel sets the last event of a watch: an object with the labels, or for a watch of a single name, an annotation.
func (g *generator) sentinel(op *Operation, k *kind, labels map[string]any, only string) {
	op.LastOperation = len(g.ops) + 2 + g.r.IntN(60)
	op.SentinelPath = k.collection(k.version)
	if !k.namespaced {
		labels["run"] = "${p}"
	}
	name := strings.TrimSuffix(k.objectName(0), "object-0") + fmt.Sprintf("sentinel-%d", len(g.ops))
	if only != "" {
		name = only
		op.SentinelPatch = encode(map[string]any{"metadata": map[string]any{"labels": labels, "annotations": map[string]any{"sentinel": fmt.Sprint(len(g.ops))}}})
	}
	object := decodeObject(k.bodies[0])
	object["apiVersion"] = k.apiVersion(k.version)
	object["kind"] = k.name
	object["metadata"] = map[string]any{"name": name, "labels": labels, "annotations": map[string]any{"sentinel": fmt.Sprint(len(g.ops))}}
	op.Sentinel = encode(object)
}
