package dynamic

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/anykind/anykind/internal/pathsegment"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
)

// InvalidRequestError reports a call that cannot succeed. No request was sent. apierrors.IsNotFound holds if
// the server does not serve the subresource, and apierrors.IsMethodNotSupported if it does not serve the verb. It is
// never a *apierrors.StatusError, which is a server's response.
type InvalidRequestError struct {
	// Verb is the API verb, such as "get" or "deletecollection".
	Verb string
	// Resource is the resource as formatted by Resource.String.
	Resource string
	// Name is the object's name, empty for a call on a collection.
	Name string
	// Reason is the cause, with a hint.
	Reason string
	cause  error
}

func (e *InvalidRequestError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s %s: %s", e.Verb, e.Resource, e.Reason)
	}
	return fmt.Sprintf("%s %s %q: %s", e.Verb, e.Resource, e.Name, e.Reason)
}

// Unwrap returns the cause, such as the error of a selector's parser.
func (e *InvalidRequestError) Unwrap() error { return e.cause }

func (e *endpoint) invalid(verb, name, reason string, args ...any) error {
	return e.invalidFor(nil, verb, name, fmt.Sprintf(reason, args...))
}

// invalidFor is invalid with a cause; without one the reason is the cause. It is not worth a retry.
func (e *endpoint) invalidFor(cause error, verb, name, reason string) error {
	if cause == nil {
		cause = errors.New(reason)
	}
	return &InvalidRequestError{Verb: verb, Resource: e.String(), Name: name, Reason: reason, cause: retry.Terminal(cause)}
}

// notServedError is the cause of an InvalidRequestError for which a server would return a Status. It has that Status's
// code, reason and kind, and no name: it is about a path, not about an object.
type notServedError struct{ status metav1.Status }

func (e *notServedError) Error() string { return e.status.Message }

// Status implements apierrors.APIStatus, by which apierrors.IsNotFound and its siblings classify errors.
func (e *notServedError) Status() metav1.Status { return e.status }

func (e *endpoint) notServed(verb, name string, code int32, statusReason metav1.StatusReason, reason string, served []string) error {
	reason = fmt.Sprintf(reason, cmp.Or(strings.Join(served, ", "), "none"))
	return e.invalidFor(&notServedError{metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: statusReason, Message: reason,
		Details: &metav1.StatusDetails{Group: e.apiResource.GVR.Group, Kind: e.apiResource.GVR.Resource},
	}}, verb, name, reason)
}

// validateObject validates a call on one object: the server serves the verb, and all segments of the path are valid.
func (e *endpoint) validateObject(verb, name string) error {
	if err := e.validateVerb(verb, name); err != nil {
		return err
	}
	return e.validateObjectPath(verb, name)
}

func (e *endpoint) validateCollection(verb string, opts *metav1.ListOptions) error {
	if e.subresource != "" {
		return e.invalid(verb, "", "a subresource belongs to one object and has no collection (remove Subresource)")
	}
	if err := e.validateVerb(verb, ""); err != nil {
		return err
	}
	if err := e.validateCollectionPath(verb, ""); err != nil || opts == nil && e.name == "" {
		return err
	}
	if reason := invalidSegment(e.name); e.name != "" && reason != "" {
		return e.invalid(verb, e.name, "the name %s", reason)
	}
	if opts == nil {
		return nil
	}
	if opts.Watch && verb != "watch" {
		return e.invalid(verb, "", "ListOptions.Watch is set (call Watch to watch)")
	}
	// The server parses selectors with the same code. Which fields it supports only the server knows.
	if _, err := labels.Parse(opts.LabelSelector); err != nil {
		return e.invalidFor(err, verb, "", fmt.Sprintf("the label selector %q cannot be parsed: %v", opts.LabelSelector, err))
	}
	if _, err := fields.ParseSelector(opts.FieldSelector); err != nil {
		return e.invalidFor(err, verb, "", fmt.Sprintf("the field selector %q cannot be parsed: %v", opts.FieldSelector, err))
	}
	return nil
}

// validateVerb rejects a verb or a subresource that the server does not serve, and writes to tables.
func (e *endpoint) validateVerb(verb, name string) error {
	if verb != "get" && verb != "list" && verb != "watch" {
		if err := e.rejectTables(verb, name); err != nil {
			return err
		}
	}
	verbs := e.apiResource.Verbs
	if len(verbs)+len(e.apiResource.Subresources) == 0 {
		return nil // a resource that does not list them
	}
	if e.subresource != "" {
		sub, ok := e.apiResource.Subresource(e.subresource)
		if !ok {
			var served []string
			for _, other := range e.apiResource.Subresources {
				served = append(served, other.Name)
			}
			return e.notServed(verb, name, http.StatusNotFound, metav1.StatusReasonNotFound,
				"the server serves no such subresource (there are: %s)", served)
		}
		verbs = sub.Verbs
	}
	if slices.Contains(verbs, verb) {
		return nil
	}
	return e.notServed(verb, name, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		"the server does not support the verb (it has: %s)", verbs)
}

// rejectTables rejects a call that reads or writes objects on a handle of Tables.
func (e *endpoint) rejectTables(verb, name string) error {
	if e.representation.kind == tableKind {
		return e.invalid(verb, name, "rows of a table are no objects (use the handle without Tables)")
	}
	return nil
}

func (e *endpoint) validateObjectPath(verb, name string) error {
	if reason := invalidSegment(name); reason != "" {
		return e.invalid(verb, name, "the name %s", reason)
	}
	if e.name != "" && name != e.name {
		return e.invalid(verb, name, "name mismatch: call has %q, handle has %q", name, e.name)
	}
	if e.isNamespaced() && e.scope == allNamespaces {
		return e.invalid(verb, name, "one object needs a namespace (choose it with Namespace)")
	}
	if e.subresource != "" {
		for segment := range strings.SplitSeq(e.subresource, "/") { // some servers have two, such as sev/setupsession
			if reason := invalidSegment(segment); reason != "" {
				return e.invalid(verb, name, "the subresource's segment %s %s", quoted(segment), reason)
			}
		}
	}
	return e.validateCollectionPath(verb, name)
}

func (e *endpoint) validateCollectionPath(verb, name string) error {
	segments := []string{e.apiResource.GVR.Version, e.apiResource.GVR.Resource} // from a server, perhaps a hostile one
	if group := e.apiResource.GVR.Group; group != "" {
		segments = append(segments, group)
	}
	for _, segment := range segments {
		if reason := invalidSegment(segment); reason != "" {
			return e.invalid(verb, name, "the segment %s of the resource's path %s", quoted(segment), reason)
		}
	}
	switch {
	case !e.isNamespaced() && e.scope == chosenNamespace:
		return e.invalid(verb, name, "%s is cluster-scoped (remove Namespace(%q))", e.apiResource.GVK.Kind, e.namespace)
	case e.isNamespaced() && e.scope != allNamespaces:
		if reason := invalidSegment(e.namespace); reason != "" {
			return e.invalid(verb, name, "the namespace %q %s (choose one with Namespace, or AllNamespaces to list or watch in all)",
				e.namespace, reason)
		}
	}
	return nil
}

// invalidSegment returns why text cannot be a segment of a URL's path, or "". The server's own rules for names are
// stricter, and the server's to enforce.
func invalidSegment(text string) string {
	if text == "" {
		return "is empty"
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		return "contains a control character"
	}
	return strings.Join(pathsegment.Validate(text), " and ")
}

// validateWrite validates a call that writes obj. It returns e in the namespace of obj, and the name in the request's path,
// which is empty for a new object.
func (e *endpoint) validateWrite(verb string, obj *unstructured.Object) (target *endpoint, name string, err error) {
	if err := e.validateContent(verb, obj); err != nil {
		return nil, "", err
	}
	name = obj.GetName()
	target = e
	if namespace := obj.GetNamespace(); namespace != "" {
		switch {
		case !e.apiResource.Namespaced && !e.isScopeUnknown:
			return nil, "", e.invalid(verb, name, "%s is cluster-scoped, but the object has the namespace %q (remove it)", e.apiResource.GVK.Kind, namespace)
		case e.scope == chosenNamespace && e.namespace != namespace:
			return nil, "", e.invalid(verb, name, "namespace mismatch: object has %q, handle has %q", namespace, e.namespace)
		}
		target = e.inNamespace(namespace)
	}
	switch {
	case e.name == "":
	case e.subresource != "":
		name = e.name
	case name != e.name:
		return nil, "", e.invalid(verb, name, "name mismatch: object has %q, handle has %q", name, e.name)
	}
	switch {
	case verb != "create" || e.subresource != "":
		return target, name, target.validateObject(verb, name)
	case target.isNamespaced() && target.scope == allNamespaces:
		return nil, "", e.invalid(verb, name, "neither the object nor the handle has a namespace (choose one with Namespace)")
	default:
		return target, "", target.validateCollection(verb, nil)
	}
}

// validateContent rejects an object of a different kind, and an object that the verb must not write.
func (e *endpoint) validateContent(verb string, obj *unstructured.Object) error {
	if obj == nil || obj.Object == nil {
		return e.invalid(verb, "", "the object is nil")
	}
	name := obj.GetName()
	kind := obj.GroupVersionKind()
	sub, ok := e.apiResource.Subresource(e.subresource)
	switch {
	case isPartial(obj) || verb == "update" && e.lacksManagedFields(obj):
		return e.invalid(verb, name, "the object is metadata only, and writing it would empty the stored one "+
			"(use Patch, or read it without Metadata; to empty a field, set it)")
	case verb == "patch" && len(obj.GetManagedFields()) > 0:
		return e.invalid(verb, name, "an object to apply has no metadata.managedFields "+
			"(apply the fields you want, not an object read from the server)")
	case kind.Empty() || e.apiResource.GVK.Empty():
	case e.subresource == "" && kind != e.apiResource.GVK:
		return e.invalid(verb, name, "the object is a %s, not a %s (Client.ForObject returns the right handle)", kind, e.apiResource.GVK)
	case ok && !sub.GVK.Empty() && kind.GroupKind() != sub.GVK.GroupKind(): // some take several versions, such as eviction
		return e.invalid(verb, name, "the object is a %s, but this subresource takes a %s", kind, sub.GVK)
	}
	return nil
}

// lacksManagedFields reports whether obj is metadata only although its managedFields list other fields, written through
// the handle's subresource.
func (e *endpoint) lacksManagedFields(obj *unstructured.Object) bool {
	for field := range obj.Object {
		if field != "apiVersion" && field != "kind" && field != "metadata" {
			return false
		}
	}
	metadata, _ := obj.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	for _, entry := range entries {
		entry, _ := entry.(map[string]any)
		if subresource, _ := entry["subresource"].(string); subresource != e.subresource {
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
