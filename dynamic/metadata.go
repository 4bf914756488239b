package dynamic

import (
	"strings"

	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const partialKind = "PartialObjectMetadata"

// Metadata returns a handle on the same resource whose verbs answer with metadata alone: Get, List, ListPage, Watch and
// Follow, and the answers to Create, Update, Patch, Apply and Delete. The objects have their own apiVersion and kind, as
// whole ones do, so that [Client.Of] finds their resource and they can be owners. Of large objects the server then sends,
// and the client decodes, a fraction. A server that cannot leave the rest out sends whole objects; the answers are the same
// then, the traffic is not less. See
// https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches.
//
// What is written stays whole. Updating with an object that was read like this would empty the stored one: Update refuses
// it where its managedFields name fields that it lacks. Patch changes metadata.
func (r *Resource) Metadata() *Resource {
	chosen := *r
	chosen.form = form{as: partialKind}
	return &chosen
}

// inForm converts an object of an answer to the handle's form.
func (r *Resource) inForm(obj *unstructured.Object) *unstructured.Object {
	if r.form.as != partialKind || isStatus(obj) {
		return obj
	}
	if isPartial(obj) {
		obj.SetGroupVersionKind(r.ownKind())
		return obj
	}
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind(), "metadata": obj.Object["metadata"],
	}}
}

// lazyInForm is inForm.
func (r *Resource) lazyInForm(obj *unstructured.Lazy) *unstructured.Lazy {
	if r.form.as != partialKind {
		return obj
	}
	own := metav1.TypeMeta{APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind()}
	if own.Kind == partialKind && own.APIVersion == metaVersion {
		own.APIVersion, own.Kind = r.ownKind().ToAPIVersionAndKind()
	}
	return obj.Metadata(own)
}

// listInForm is inForm for the type of a list.
func (r *Resource) listInForm(list metav1.TypeMeta) metav1.TypeMeta {
	if r.form.as == partialKind && list.Kind == partialKind+"List" && list.APIVersion == metaVersion {
		list.APIVersion, list.Kind = r.mapping.GVK.ToAPIVersionAndKind()
		list.Kind += "List"
	}
	return list
}

// ownKind returns the kind of the handle's objects, or of the subresource where the server names it.
func (r *Resource) ownKind() schema.GroupVersionKind {
	if sub, ok := r.mapping.Subresource(r.sub); ok && !sub.GVK.Empty() {
		return sub.GVK
	}
	return r.mapping.GVK
}

func isPartial(obj *unstructured.Object) bool {
	return obj.GetKind() == partialKind && obj.GetAPIVersion() == metaVersion
}

// lacksManaged reports whether obj is metadata alone although its managedFields name other fields, written through the
// handle's subresource.
func (r *Resource) lacksManaged(obj *unstructured.Object) bool {
	for field := range obj.Object {
		if field != "apiVersion" && field != "kind" && field != "metadata" {
			return false
		}
	}
	metadata, _ := obj.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	for _, entry := range entries {
		entry, _ := entry.(map[string]any)
		if through, _ := entry["subresource"].(string); through != r.sub {
			continue
		}
		fields, _ := entry["fieldsV1"].(map[string]any)
		for field := range fields {
			if strings.HasPrefix(field, "f:") && field != "f:metadata" && field != "f:apiVersion" && field != "f:kind" {
				return true
			}
		}
	}
	return false
}
