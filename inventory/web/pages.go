package web

import (
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/inventory/relation"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured"
)

const (
	pageSize  = 100
	maxInTree = 1000
)

// kinds counts the objects of each kind.
func kinds(r *http.Request, v *inventory.View) (map[string]any, error) {
	page, err := v.Query(r.Context(), nil)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, e := range page.Entries {
		counts[e.APIResource().GVR.GroupResource().String()]++
	}
	return map[string]any{"kinds": counts}, nil
}

// search returns a page of the selected objects. The text of Secrets is not searched.
func search(r *http.Request, v *inventory.View) (map[string]any, error) {
	values := r.URL.Query()
	kind := values.Get("kind")
	text := values.Get("text")
	page, err := v.Query(r.Context(), &inventory.Query{
		Namespace: values.Get("namespace"), Name: values.Get("name"), LabelSelector: values.Get("selector"), Text: text,
		Readiness: readiness.Status(values.Get("readiness")), Limit: pageSize, Continue: values.Get("continue"),
		Select: func(resource *discovery.Resource) bool {
			isKind := kind == "" || strings.EqualFold(kind, resource.GVK.Kind) || kind == resource.GVR.GroupResource().String()
			return isKind && (text == "" || !isSecret(resource))
		},
	})
	if err != nil {
		return nil, err
	}
	data := map[string]any{"query": values, "objects": append([]inventory.Entry{}, page.Entries...)}
	if page.Continue != "" {
		values.Set("continue", page.Continue)
		data["next"] = "objects?" + values.Encode()
	}
	return data, nil
}

// object returns an object with its tree, references and events.
func object(r *http.Request, v *inventory.View) (map[string]any, error) {
	ctx := r.Context()
	uid := types.UID(r.URL.Query().Get("uid"))
	found, err := v.Query(ctx, &inventory.Query{UID: uid})
	if err != nil {
		return nil, err
	}
	if len(found.Entries) == 0 {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "objects"}, string(uid))
	}
	entry := found.Entries[0]
	obj := entry.Object()
	refersTo, err := v.Edges(ctx, obj, relation.BuiltIn())
	if err != nil {
		return nil, err
	}
	usedBy, err := v.EdgesTo(ctx, obj, relation.BuiltIn())
	if err != nil {
		return nil, err
	}
	dependents, err := v.Query(ctx, &inventory.Query{Owner: uid, Descendants: true, Limit: maxInTree})
	if err != nil {
		return nil, err
	}
	events, err := v.Query(ctx, &inventory.Query{
		Select:    func(resource *discovery.Resource) bool { return resource.GVR.GroupResource().String() == "events" },
		Namespace: entry.Namespace, FieldSelector: "involvedObject.uid=" + string(uid), Limit: pageSize,
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"object": fields(entry)[0], "readiness": entry.Handle().Readiness(obj).String(), "events": fields(events.Entries...),
		"tree": newTree(entry, dependents.Entries), "truncated": dependents.Continue != "", "refersTo": refersTo, "usedBy": usedBy,
	}, nil
}

// fields returns the fields of objects, and only the metadata of a Secret. Annotations of a Secret may contain its data.
func fields(entries ...inventory.Entry) []map[string]any {
	all := make([]map[string]any, len(entries))
	for i, e := range entries {
		obj, err := e.Object().Object()
		if err != nil {
			continue // never, of an object of the cache
		}
		obj.SetManagedFields(nil)
		all[i] = obj.Object
		if isSecret(e.APIResource()) {
			obj.SetAnnotations(nil)
			all[i] = map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind(), "metadata": obj.Object["metadata"]}
		}
	}
	return all
}

func isSecret(resource *discovery.Resource) bool {
	return resource.GVR.GroupResource() == schema.GroupResource{Resource: "secrets"}
}

func encodeYAML(fields map[string]any) (string, error) {
	text, err := unstructured.EncodeYAML(&unstructured.Object{Object: fields})
	return string(text), err
}
