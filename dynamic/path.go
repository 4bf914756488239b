package dynamic

import (
	"net/url"
	"strings"

	"github.com/anykind/anykind/unstructured"
)

// Path is where the API has the object of that name, or with "" the handle's collection, escaped and ready for a
// transport.Request: /apis/apps/v1/namespaces/shop/deployments/web. [Client.At] is the way back.
func (r *Resource) Path(name string) (string, error) {
	if name != "" {
		return r.pathOf("find", name)
	}
	if r.sub != "" {
		return "", r.refuse("find", "", "a subresource belongs to one object: give the object's name")
	}
	return r.resourcePath("find", "")
}

// objectPath is the path of one object, checked: the verb is served, name and namespace are fit for a URL.
func (r *Resource) objectPath(verb, name string) (string, error) {
	if err := r.checkVerb(verb, name); err != nil {
		return "", err
	}
	return r.pathOf(verb, name)
}

// pathOf is the path of one object; verb only serves the error.
func (r *Resource) pathOf(verb, name string) (string, error) {
	if reason := unfitForPath(name); reason != "" {
		return "", r.refuse(verb, name, "the name %s", reason)
	}
	if r.mapping.Namespaced && r.choice == inNamespaces {
		return "", r.refuse(verb, name, "one object needs a namespace: choose it with In")
	}
	collection, err := r.resourcePath(verb, name)
	if err != nil {
		return "", err
	}
	path := collection + "/" + url.PathEscape(name)
	if r.sub == "" {
		return path, nil
	}
	for segment := range strings.SplitSeq(r.sub, "/") { // some servers have subresources of two, such as sev/setupsession
		if reason := unfitForPath(segment); reason != "" {
			return "", r.refuse(verb, name, "%s, a part of the subresource's name, %s", quotedText(segment), reason)
		}
		path += "/" + url.PathEscape(segment)
	}
	return path, nil
}

// collectionPath is the path of all objects in the handle's namespace or namespaces, checked.
func (r *Resource) collectionPath(verb string) (string, error) {
	if r.sub != "" {
		return "", r.refuse(verb, "", "a subresource belongs to one object and has no collection: leave Sub out")
	}
	if err := r.checkVerb(verb, ""); err != nil {
		return "", err
	}
	return r.resourcePath(verb, "")
}

// resourcePath is /apis/GROUP/VERSION[/namespaces/NAMESPACE]/RESOURCE; name only serves the error.
func (r *Resource) resourcePath(verb, name string) (string, error) {
	gvr := r.mapping.GVR
	segments := []string{gvr.Version, gvr.Resource}
	if gvr.Group != "" {
		segments = append(segments, gvr.Group)
	}
	for _, segment := range segments { // a server wrote them, perhaps one that is not the API server's own
		if reason := unfitForPath(segment); reason != "" {
			return "", r.refuse(verb, name, "%s, as the server names the resource, %s", quotedText(segment), reason)
		}
	}
	path := "/api/"
	if gvr.Group != "" {
		path = "/apis/" + url.PathEscape(gvr.Group) + "/"
	}
	path += url.PathEscape(gvr.Version)
	switch {
	case !r.mapping.Namespaced:
		if r.choice == byIn {
			return "", r.refuse(verb, name, "%s is cluster-scoped and in no namespace: leave In(%q) out", r.mapping.GVK.Kind, r.namespace)
		}
	case r.choice != inNamespaces:
		if reason := unfitForPath(r.namespace); reason != "" {
			return "", r.refuse(verb, name, "the namespace %q %s: choose one with In, or AllNamespaces to list or watch in all",
				r.namespace, reason)
		}
		path += "/namespaces/" + url.PathEscape(r.namespace)
	}
	return path + "/" + url.PathEscape(gvr.Resource), nil
}

// holding is the handle to write obj with: its namespace is obj's where the caller chose none, and must not differ
// where he did. obj's kind must be the resource's.
func (r *Resource) holding(verb string, obj *unstructured.Object) (*Resource, error) {
	if obj == nil || obj.Object == nil {
		return nil, r.refuse(verb, "", "the object is nil")
	}
	name, namespace := obj.GetName(), obj.GetNamespace()
	if isPartial(obj) || verb == "update" && r.lacksManaged(obj) {
		return nil, r.refuse(verb, name, "the object is metadata alone, and writing it would empty the stored one: "+
			"use Patch, or read it without Metadata; to empty a field, set it")
	}
	if err := r.checkKind(verb, obj); err != nil {
		return nil, err
	}
	switch {
	case namespace == "":
		return r, nil
	case !r.mapping.Namespaced:
		return nil, r.refuse(verb, name, "%s is cluster-scoped, but the object names the namespace %q: remove it", r.mapping.GVK.Kind, namespace)
	case r.choice == byIn && r.namespace != namespace:
		return nil, r.refuse(verb, name, "the object names the namespace %q, the handle %q: let them agree", namespace, r.namespace)
	default:
		return r.In(namespace), nil
	}
}

// checkKind refuses an object of another kind than the resource's, or the subresource's, where the server tells it.
func (r *Resource) checkKind(verb string, obj *unstructured.Object) error {
	kind, name := obj.GroupVersionKind(), obj.GetName()
	sub, ok := r.mapping.Subresource(r.sub)
	switch {
	case kind.Empty():
	case r.sub == "" && kind != r.mapping.GVK:
		return r.refuse(verb, name, "the object is a %s, not a %s: Client.Of gives the right handle", kind, r.mapping.GVK)
	// Some take several versions, such as eviction.
	case ok && !sub.GVK.Empty() && kind.GroupKind() != sub.GVK.GroupKind():
		return r.refuse(verb, name, "the object is a %s, but this subresource takes a %s", kind, sub.GVK)
	}
	return nil
}
