package access

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	reviewGroup   = "authentication.k8s.io"
	decisionGroup = "authorization.k8s.io"
)

// resourceAttributes and nonResourceAttributes are the request of an access review.
type resourceAttributes struct {
	Namespace   string `json:"namespace"`
	Verb        string `json:"verb"`
	Group       string `json:"group"`
	Version     string `json:"version"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Name        string `json:"name"`
}

type nonResourceAttributes struct {
	Path string `json:"path"`
	Verb string `json:"verb"`
}

// reviewSpec has the fields of all access reviews.
type reviewSpec struct {
	Resource    *resourceAttributes    `json:"resourceAttributes"`
	NonResource *nonResourceAttributes `json:"nonResourceAttributes"`
	User        string                 `json:"user"`
	UID         string                 `json:"uid"`
	Extra       map[string][]string    `json:"extra"`
	Groups      []string               `json:"groups"`
	Namespace   string                 `json:"namespace"`
	Token       string                 `json:"token"`
	Audiences   []string               `json:"audiences"`
}

// IsReview reports whether Review handles a create of the resource. Reviews are never stored.
func IsReview(group, resource string) bool {
	switch group {
	case decisionGroup:
		return slices.Contains([]string{"subjectaccessreviews", "selfsubjectaccessreviews", "localsubjectaccessreviews", "selfsubjectrulesreviews"}, resource)
	case reviewGroup:
		return resource == "selfsubjectreviews" || resource == "tokenreviews"
	}
	return false
}

// Review returns the response to a review. object is not modified.
func (a *Access) Review(user *User, resource, namespace string, object map[string]any) (map[string]any, error) {
	var review struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     reviewSpec        `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &review); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	response := runtime.DeepCopyJSON(object)
	if _, found := response["metadata"]; !found {
		response["metadata"] = map[string]any{}
	}
	if resource == "localsubjectaccessreviews" && review.Metadata.Namespace == "" {
		response["metadata"] = map[string]any{"namespace": namespace}
	}
	spec := review.Spec
	switch resource {
	case "selfsubjectreviews":
		delete(response, "spec")
		response["metadata"] = map[string]any{"creationTimestamp": a.options.Now().UTC().Format(time.RFC3339)}
		response["status"] = map[string]any{"userInfo": UserInfo(user)}
		return response, nil
	case "tokenreviews":
		status, err := a.reviewToken(spec.Token, spec.Audiences)
		response["status"] = status
		return response, err
	case "selfsubjectrulesreviews":
		if spec.Namespace == "" {
			return nil, apierrors.NewBadRequest("no namespace on request")
		}
		response["metadata"] = map[string]any{}
		response["spec"] = map[string]any{}
		response["status"] = a.rulesStatus(user, spec.Namespace)
		return response, nil
	}
	reviewed := user
	if resource != "selfsubjectaccessreviews" {
		reviewed = &User{Name: spec.User, Groups: spec.Groups}
	}
	if errs := spec.validate(resource, namespace, review.Metadata); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: decisionGroup}, "", errs) // the API server omits the kind
	}
	if resource == "localsubjectaccessreviews" && review.Metadata.Namespace != "" && review.Metadata.Namespace != namespace {
		return nil, apierrors.NewBadRequest("spec.resourceAttributes.namespace must match namespace: " + namespace)
	}
	allowed, reason := a.Allowed(reviewed, spec.attributes())
	status := map[string]any{"allowed": allowed}
	if reason != "" {
		status["reason"] = reason
	}
	response["status"] = status
	return response, nil
}

func (s reviewSpec) attributes() Attributes {
	if r := s.Resource; r != nil {
		return Attributes{Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name}
	}
	return Attributes{Verb: s.NonResource.Verb, Path: s.NonResource.Path}
}

func (s reviewSpec) validate(resource, namespace string, metadata metav1.ObjectMeta) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if s.Resource != nil && s.NonResource != nil {
		errs = append(errs, field.Invalid(spec.Child("nonResourceAttributes"), s.NonResource, "cannot be specified in combination with resourceAttributes"))
	}
	if s.Resource == nil && s.NonResource == nil {
		errs = append(errs, field.Invalid(spec.Child("resourceAttributes"), s.NonResource, "exactly one of nonResourceAttributes or resourceAttributes must be specified"))
	}
	if resource != "selfsubjectaccessreviews" && s.User == "" && len(s.Groups) == 0 {
		errs = append(errs, field.Invalid(spec.Child("user"), s.User, "at least one of user or group must be specified"))
	}
	isLocal := resource == "localsubjectaccessreviews"
	metadata.ManagedFields = nil
	rest := "must be empty"
	if isLocal {
		metadata.Namespace = ""
		rest = "must be empty except for namespace"
	}
	if text, err := json.Marshal(metadata); err == nil && string(text) != "{}" {
		errs = append(errs, field.Invalid(field.NewPath("metadata"), metadata, rest))
	}
	if isLocal && s.Resource != nil && s.Resource.Namespace != namespace {
		errs = append(errs, field.Invalid(field.NewPath("spec.resourceAttributes.namespace"), s.Resource.Namespace, "must match metadata.namespace"))
	}
	if isLocal && s.NonResource != nil {
		errs = append(errs, field.Invalid(field.NewPath("spec.nonResourceAttributes"), s.NonResource, "disallowed on this kind of request"))
	}
	return errs
}

// rulesStatus returns the status of a SelfSubjectRulesReview.
func (a *Access) rulesStatus(user *User, namespace string) map[string]any {
	resources := []any{}
	paths := []any{}
	add := func(_ string, r rule) bool {
		if len(r.Resources) > 0 {
			resources = append(resources, withoutEmpty(map[string]any{
				"verbs": list(r.Verbs), "apiGroups": list(r.APIGroups), "resources": list(r.Resources), "resourceNames": list(r.ResourceNames),
			}))
		}
		if len(r.NonResourceURLs) > 0 {
			paths = append(paths, withoutEmpty(map[string]any{"verbs": list(r.Verbs), "nonResourceURLs": list(r.NonResourceURLs)}))
		}
		return true
	}
	if !a.options.RBAC || slices.Contains(user.Groups, GroupMasters) {
		all := []string{"*"}
		add("", rule{Verbs: all, APIGroups: all, Resources: all})
		add("", rule{Verbs: all, NonResourceURLs: all})
	}
	var errs []string
	if a.options.RBAC {
		errs = a.visitRules(user, namespace, add)
	}
	status := map[string]any{"incomplete": false, "resourceRules": resources, "nonResourceRules": paths}
	if len(errs) > 0 {
		status["evaluationError"] = errs[0]
		if len(errs) > 1 {
			status["evaluationError"] = fmt.Sprint(errs)
		}
	}
	return status
}

// UserInfo returns the user in the form of reviews and admission requests.
func UserInfo(user *User) map[string]any {
	info := map[string]any{"groups": list(user.Groups)}
	if user.Name != "" {
		info["username"] = user.Name
	}
	if user.UID != "" {
		info["uid"] = user.UID
	}
	if len(user.Extra) > 0 {
		extra := map[string]any{}
		for key, values := range user.Extra {
			extra[key] = list(values)
		}
		info["extra"] = extra
	}
	return withoutEmpty(info)
}

func withoutEmpty(object map[string]any) map[string]any {
	for key, value := range object {
		if values, isList := value.([]any); isList && len(values) == 0 {
			delete(object, key)
		}
	}
	return object
}

func list(values []string) []any {
	all := make([]any, len(values))
	for i, value := range values {
		all[i] = value
	}
	return all
}
