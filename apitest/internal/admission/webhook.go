package admission

import (
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
)

const configurationGroup = "admissionregistration.k8s.io"

// webhook has the common fields of mutating and validating webhooks.
type webhook struct {
	Name                    string                `json:"name"`
	ClientConfig            clientConfig          `json:"clientConfig"`
	Rules                   []rule                `json:"rules"`
	FailurePolicy           string                `json:"failurePolicy"`
	MatchPolicy             string                `json:"matchPolicy"`
	NamespaceSelector       *metav1.LabelSelector `json:"namespaceSelector"`
	ObjectSelector          *metav1.LabelSelector `json:"objectSelector"`
	SideEffects             string                `json:"sideEffects"`
	TimeoutSeconds          int                   `json:"timeoutSeconds"`
	AdmissionReviewVersions []string              `json:"admissionReviewVersions"`
	ReinvocationPolicy      string                `json:"reinvocationPolicy"`
	MatchConditions         []any                 `json:"matchConditions"`
}

type clientConfig struct {
	URL      string `json:"url"`
	CABundle string `json:"caBundle"`
	Service  *struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		Path      string `json:"path"`
		Port      int32  `json:"port"`
	} `json:"service"`
}

// rule is a rule of a webhook.
type rule struct {
	Operations  []string `json:"operations"`
	APIGroups   []string `json:"apiGroups"`
	APIVersions []string `json:"apiVersions"`
	Resources   []string `json:"resources"`
	Scope       string   `json:"scope"`
}

// invocation is a webhook to be called for a request. resource is in the version matched by the webhook.
type invocation struct {
	webhook
	resource *kinds.Resource
	called   bool
}

// hooks returns the webhooks matching the request, ordered by configuration name. Disabled webhooks are warnings.
func (a *Admission) hooks(configurations string, attributes *Attributes) ([]*invocation, error) {
	if a.config.Store == nil || isConfiguration(attributes) {
		return nil, nil
	}
	stored, _, err := a.config.Store.List(configurationGroup, configurations, "", 0)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	var all []*invocation
	for _, object := range stored {
		var configuration struct {
			Webhooks []webhook `json:"webhooks"`
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &configuration); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		for _, hook := range configuration.Webhooks {
			one, err := a.match(hook, attributes)
			if err != nil {
				return nil, err
			}
			if one != nil {
				all = append(all, one)
			}
		}
	}
	if a.config.DisableWebhooks {
		for _, one := range all {
			attributes.Warn("apitest: not validated: webhook " + one.Name + " was not called")
		}
		return nil, nil
	}
	return all, nil
}

// isConfiguration reports whether the request is for an admission configuration. Admission never applies to them.
func isConfiguration(attributes *Attributes) bool {
	return attributes.Resource.Group == configurationGroup
}

// match returns the webhook's invocation for the request, or nil if its rules do not match.
func (a *Admission) match(hook webhook, attributes *Attributes) (*invocation, error) {
	resource := attributes.Resource
	i := slices.IndexFunc(hook.Rules, func(r rule) bool { return r.matches(attributes, resource) })
	if i < 0 && hook.MatchPolicy != "Exact" && resource.Definition != nil {
		resource = nil
		for _, r := range hook.Rules {
			for _, other := range a.config.Registry.Versions(attributes.Resource.Group, attributes.Resource.Plural) {
				if resource == nil && r.matches(attributes, other) {
					resource = other
				}
			}
		}
		if resource == nil {
			return nil, nil
		}
	} else if i < 0 {
		return nil, nil
	}
	matches, err := a.matchesNamespace(hook.NamespaceSelector, attributes)
	if err != nil || !matches {
		return nil, err
	}
	if matches, err = matchesObject(hook.ObjectSelector, attributes); err != nil || !matches {
		return nil, err
	}
	if len(hook.MatchConditions) > 0 {
		attributes.Warn("apitest: not validated: the matchConditions of webhook " + hook.Name + " are taken as true")
	}
	return &invocation{webhook: hook, resource: resource}, nil
}

func (r rule) matches(attributes *Attributes, resource *kinds.Resource) bool {
	isNamespace := resource.Group == "" && resource.Plural == "namespaces"
	isNamespaced := attributes.Namespace != "" && !isNamespace
	switch r.Scope {
	case "Namespaced":
		if !isNamespaced {
			return false
		}
	case "Cluster":
		if isNamespaced {
			return false
		}
	}
	return has(r.Operations, string(attributes.Operation)) && has(r.APIGroups, resource.Group) && has(r.APIVersions, resource.Version) &&
		slices.ContainsFunc(r.Resources, func(pattern string) bool {
			name, subresource, _ := strings.Cut(pattern, "/")
			return (name == "*" || name == resource.Plural) && (subresource == "*" || subresource == attributes.Subresource)
		})
}

func has(list []string, value string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}

// matchesNamespace reports whether the labels of the request's namespace match. Requests for cluster-scoped objects always match.
func (a *Admission) matchesNamespace(selector *metav1.LabelSelector, attributes *Attributes) (bool, error) {
	isNamespace := attributes.Resource.Group == "" && attributes.Resource.Plural == "namespaces"
	if selector == nil || attributes.Namespace == "" && !isNamespace {
		return true, nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	if parsed.Empty() {
		return true, nil
	}
	if isNamespace && attributes.Subresource == "" && attributes.Object != nil {
		return parsed.Matches(labelsOf(attributes.Object)), nil
	}
	namespace, found := a.config.Store.Get(store.Key{Resource: "namespaces", Name: attributes.Namespace})
	if !found {
		return false, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, attributes.Namespace)
	}
	return parsed.Matches(labelsOf(namespace)), nil
}

// matchesObject reports whether the labels of the new or the old object match.
func matchesObject(selector *metav1.LabelSelector, attributes *Attributes) (bool, error) {
	if selector == nil {
		return true, nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	return parsed.Empty() || attributes.Object != nil && parsed.Matches(labelsOf(attributes.Object)) ||
		attributes.OldObject != nil && parsed.Matches(labelsOf(attributes.OldObject)), nil
}

func labelsOf(object map[string]any) labels.Set {
	return nested.StringMap(object, "metadata", "labels")
}
