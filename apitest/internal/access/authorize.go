package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Attributes are the verb and the target of a request, for RBAC. A non-resource request has a Path only.
type Attributes struct {
	Verb                                          string
	Group, Resource, Subresource, Namespace, Name string
	Path                                          string
}

// Authorize returns nil if the user is allowed, otherwise a Status 403 with the API server's text.
func (a *Access) Authorize(user *User, attributes Attributes) error {
	if allowed, reason := a.Allowed(user, attributes); !allowed {
		return Forbidden(user, attributes, reason)
	}
	return nil
}

// Allowed reports whether the user is allowed, with the reason shown in a SubjectAccessReview.
func (a *Access) Allowed(user *User, attributes Attributes) (allowed bool, reason string) {
	if !a.options.RBAC || slices.Contains(user.Groups, GroupMasters) {
		return true, ""
	}
	return a.rbacAllows(user, attributes)
}

// Forbidden returns the Status for a denied request.
func Forbidden(user *User, attributes Attributes, reason string) error {
	text := escape(forbiddenText(user, attributes))
	if reason != "" {
		text += ": " + reason
	}
	resource := schema.GroupResource{Group: attributes.Group, Resource: attributes.Resource}
	return apierrors.NewForbidden(resource, attributes.Name, errors.New(text))
}

func forbiddenText(user *User, attributes Attributes) string {
	if attributes.Resource == "" {
		return fmt.Sprintf("User %q cannot %s path %q", user.Name, attributes.Verb, attributes.Path)
	}
	resource := attributes.Resource
	if attributes.Subresource != "" {
		resource += "/" + attributes.Subresource
	}
	scope := "at the cluster scope"
	if attributes.Namespace != "" {
		scope = fmt.Sprintf("in the namespace %q", attributes.Namespace)
	}
	return fmt.Sprintf("User %q cannot %s resource %q in API group %q %s", user.Name, attributes.Verb, resource, attributes.Group, scope)
}

// escape escapes HTML, like the API server, for browsers that sniff the content type.
func escape(text string) string {
	return strings.NewReplacer(`&`, "&amp;", `<`, "&lt;", `>`, "&gt;").Replace(text)
}
