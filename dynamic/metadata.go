package dynamic

import "github.com/anykind/anykind/unstructured"

const partialKind = "PartialObjectMetadata"

// Metadata is a handle on the same resource whose verbs answer with metadata alone: objects of meta.k8s.io/v1, kind
// PartialObjectMetadata, from Get, List, ListPage and Watch, and from what Create, Update, Patch, Apply and Delete
// answer. Of large objects the server then sends, and the client decodes, a fraction. What is written stays whole: an
// object that was read like this is refused by Create, Update and Apply, which would empty the stored one; Patch changes
// metadata. A server that cannot leave the rest out sends whole objects; the answers are the same then, the traffic is
// not less. See https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches.
func (r *Resource) Metadata() *Resource {
	chosen := *r
	chosen.form = form{as: partialKind}
	return &chosen
}

// inForm is what the handle promises of an object that the server answered.
func (r *Resource) inForm(obj *unstructured.Object) *unstructured.Object {
	if r.form.as != partialKind || isStatus(obj) || isPartial(obj) {
		return obj
	}
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": metaVersion, "kind": partialKind, "metadata": obj.Object["metadata"],
	}}
}

func isPartial(obj *unstructured.Object) bool {
	return obj.GetKind() == partialKind && obj.GetAPIVersion() == metaVersion
}
