package apitest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest/clustercopy"
	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/store"
	"github.com/anykind/anykind/apitest/internal/write"
	"github.com/anykind/anykind/unstructured"
)

// CopyDifference describes objects of Options.Copy with a different state in the server.
type CopyDifference struct {
	Kind    schema.GroupVersionKind
	Objects int                  // their number
	Example types.NamespacedName // the first object
	Text    string               // what differs and why
}

// String returns a line of text.
func (d CopyDifference) String() string {
	example := d.Example.String()
	if d.Example.Namespace == "" {
		example = d.Example.Name
	}
	return fmt.Sprintf("%s (%d, such as %s): %s", d.Kind.GroupKind(), d.Objects, example, d.Text)
}

// CopyDifferences returns how the objects of the server differed from those of Options.Copy when it started: objects with a new
// resourceVersion, and objects of kinds that it cannot serve. [clustercopy.Copy.Omitted] has what the copy lacks.
func (s *Server) CopyDifferences() []CopyDifference { return s.copyDifferences }

const (
	renumberedAggregated = "new resourceVersions, since an aggregated API server has revisions of its own"
	renumberedText       = "new resourceVersions, since those of the cluster are not numbers"
	renumberedDouble     = "new resourceVersions, since other objects have the same ones"
	notServed            = "absent, since the server can neither find the kind nor define it"
	untyped              = "served without a schema, since the kind is neither built in nor has a definition"
)

// copyLoad is the load of a copy.
type copyLoad struct {
	*Server
	resources map[schema.GroupVersionKind]*clustercopy.Resource
	kinds     map[schema.GroupVersionKind]*kinds.Resource
	records   []store.Record
	renumber  []int // indexes of records
	taken     map[int64]bool
	largest   int64
	namespace map[string]bool // with objects
	events    map[types.UID]bool
}

// loadCopy stores the objects of Options.Copy as they are.
func (s *Server) loadCopy() error {
	c := s.options.Copy
	if c == nil {
		return nil
	}
	s.options.Copy = nil // its objects are released as they are replaced
	l := &copyLoad{
		Server: s, resources: map[schema.GroupVersionKind]*clustercopy.Resource{}, kinds: map[schema.GroupVersionKind]*kinds.Resource{},
		taken: map[int64]bool{}, namespace: map[string]bool{}, events: map[types.UID]bool{},
	}
	for i := range c.Resources {
		l.resources[c.Resources[i].GroupVersionKind()] = &c.Resources[i]
	}
	if revision, ok := revisionOf(c.ResourceVersion); ok {
		l.largest = revision
	}
	for _, wantsDefinitions := range []bool{true, false} {
		for _, obj := range c.Objects {
			if isDefinition(obj) != wantsDefinitions {
				continue
			}
			if err := l.add(obj); err != nil {
				return fmt.Errorf("load %s of Options.Copy: %w", obj, err)
			}
		}
	}
	return l.store()
}

func isDefinition(obj *unstructured.Lazy) bool {
	return obj.GetKind() == "CustomResourceDefinition" && obj.GroupVersionKind().Group == "apiextensions.k8s.io"
}

// add adds the record of an object.
func (l *copyLoad) add(obj *unstructured.Lazy) error {
	isStored := obj.GetResourceVersion() != ""
	if isDefinition(obj) {
		full, err := obj.Object()
		if err != nil {
			return err
		}
		if !isStored {
			return l.createOne(l.ctx, full.Object)
		}
		l.crds.Serve(full.Object)
	}
	resource := l.resourceOf(obj)
	if resource == nil {
		l.note(obj, notServed)
		return nil
	}
	namespace := ""
	if resource.Namespaced {
		namespace = cmp.Or(obj.GetNamespace(), "default")
		l.namespace[namespace] = true
	}
	if !isStored {
		req := &write.Request{Resource: resource, Namespace: namespace, User: admin(), UserAgent: "apitest"}
		stored, err := l.writer.Stored(l.ctx, req, obj)
		if err != nil {
			return err
		}
		obj = stored
	}
	if resource.Kind == "Event" && isStored {
		if l.events[obj.GetUID()] {
			return nil // it is there as an Event of its other group
		}
		l.events[obj.GetUID()] = true
	}
	record := store.Record{Key: store.Key{Group: resource.Group, Resource: resource.Plural, Namespace: namespace, Name: obj.GetName()}, Object: obj}
	l.number(&record, isStored)
	return nil
}

// number adds a record with its revision. Records without a revision of their own get one in store.
func (l *copyLoad) number(record *store.Record, isStored bool) {
	revision, isNumber := revisionOf(record.Object.GetResourceVersion())
	copied := l.resources[record.Object.GroupVersionKind()]
	reason := ""
	switch {
	case !isStored:
	case copied != nil && copied.IsAggregated:
		reason = renumberedAggregated
	case !isNumber:
		reason = renumberedText
	case l.taken[revision]:
		reason = renumberedDouble
	default:
		l.taken[revision] = true
		l.largest = max(l.largest, revision)
		record.Revision = revision
	}
	if record.Revision == 0 {
		l.renumber = append(l.renumber, len(l.records))
	}
	if reason != "" {
		l.note(record.Object, reason)
	}
	l.records = append(l.records, *record)
}

// revisionOf returns the revision of a resourceVersion. Numbers that leave no room for new revisions are none.
func revisionOf(resourceVersion string) (int64, bool) {
	revision, err := strconv.ParseInt(resourceVersion, 10, 64)
	return revision, err == nil && revision > 0 && revision < math.MaxInt64/2 && strconv.FormatInt(revision, 10) == resourceVersion
}

// resourceOf returns the resource of an object, or nil. A kind that is neither built in nor defined gets a resource without a schema, if
// the copy knows its plural.
func (l *copyLoad) resourceOf(obj *unstructured.Lazy) *kinds.Resource {
	kind := obj.GroupVersionKind()
	if resource, isKnown := l.kinds[kind]; isKnown {
		return resource
	}
	resource := l.registry.OfKind(kind)
	if copied := l.resources[kind]; resource == nil && copied != nil {
		if l.registry.SetUntyped(definitionOf(copied)) == nil {
			resource = l.registry.OfKind(kind)
			l.note(obj, untyped)
		}
	}
	l.kinds[kind] = resource
	return resource
}

// definitionOf returns a definition of a resource without a schema. It is served but not stored.
func definitionOf(r *clustercopy.Resource) map[string]any {
	scope := "Cluster"
	if r.Namespaced {
		scope = "Namespaced"
	}
	version := map[string]any{
		"name": r.Version, "served": true, "storage": true,
		"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
	}
	if slices.Contains(r.Subresources, "status") {
		version["subresources"] = map[string]any{"status": map[string]any{}}
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": r.Plural + "." + r.Group},
		"spec": map[string]any{
			"group": r.Group, "scope": scope, "versions": []any{version},
			"names": map[string]any{
				"plural": r.Plural, "singular": r.Singular, "kind": r.Kind, "shortNames": anySlice(r.ShortNames), "categories": anySlice(r.Categories),
			},
		},
	}
}

func anySlice(texts []string) []any {
	values := make([]any, 0, len(texts))
	for _, text := range texts {
		values = append(values, text)
	}
	return values
}

// note adds an object to CopyDifferences.
func (l *copyLoad) note(obj *unstructured.Lazy, text string) {
	kind := obj.GroupVersionKind()
	for i := range l.copyDifferences {
		if d := &l.copyDifferences[i]; d.Kind == kind && d.Text == text {
			d.Objects++
			return
		}
	}
	l.copyDifferences = append(l.copyDifferences, CopyDifference{
		Kind: kind, Objects: 1, Example: types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}, Text: text,
	})
}

// store numbers the remaining records, stores all records and creates missing namespaces.
func (l *copyLoad) store() error {
	next := max(l.largest, l.Server.store.Revision())
	for _, i := range l.renumber {
		next++
		record := &l.records[i]
		obj, err := record.Object.Object()
		if err != nil {
			return err
		}
		obj.SetResourceVersion(strconv.FormatInt(next, 10))
		data, err := unstructured.Encode(obj)
		if err != nil {
			return err
		}
		if record.Object, err = unstructured.DecodeLazy(data); err != nil {
			return err
		}
		record.Revision = next
	}
	if err := l.Server.store.Load(l.records, next); err != nil {
		return fmt.Errorf("load Options.Copy: %w", err)
	}
	for namespace := range l.namespace {
		if err := l.ensureNamespace(l.ctx, namespace); err != nil {
			return err
		}
	}
	return nil
}
