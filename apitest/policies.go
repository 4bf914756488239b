package apitest

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/anykind/anykind/apitest/internal/access"
	"github.com/anykind/anykind/apitest/internal/admission"
	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/store"
	"github.com/anykind/anykind/unstructured"
)

// PolicyEvaluator evaluates MutatingAdmissionPolicies and ValidatingAdmissionPolicies for Options.Policies. Policies of the module
// apitest/cel implements it with the API server's own code. An error rejects the request like an error of an [AdmissionFunc].
type PolicyEvaluator interface {
	// Mutate may change request.Object. It is not called for a deletion.
	Mutate(ctx context.Context, stored PolicyReader, request *AdmissionRequest) error
	Validate(ctx context.Context, stored PolicyReader, request *AdmissionRequest) error
}

// PolicyReader reads what a PolicyEvaluator needs to know of a server. Its objects are read-only.
type PolicyReader interface {
	// Get returns a stored object, or nil. A kind that is not served is a *meta.NoKindMatchError.
	Get(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (*unstructured.Object, error)
	// List returns the stored objects of a kind, in a namespace or in all for "". The error is like that of Get.
	List(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]*unstructured.Object, error)
	// IsNamespaced reports whether a kind is namespaced.
	IsNamespaced(kind schema.GroupVersionKind) (bool, error)
	// Versions returns all served versions of a custom resource, and only the given version of a built-in resource.
	Versions(resource schema.GroupVersionResource) map[schema.GroupVersionResource]schema.GroupVersionKind
	// Convert returns a custom resource in a different version.
	Convert(ctx context.Context, obj *unstructured.Object, kind schema.GroupVersionKind) (*unstructured.Object, error)
	// TypeConverter returns the schema of a kind for server-side apply.
	TypeConverter(kind schema.GroupVersionKind) (managedfields.TypeConverter, error)
	// IsAllowed reports whether a user may send a request.
	IsAllowed(user User, request AccessRequest) bool
}

// AccessRequest describes a request to authorize: a verb on a resource, or on a Path.
type AccessRequest struct {
	Verb                                          string
	Group, Resource, Subresource, Namespace, Name string
	Path                                          string
}

// policyReader implements PolicyReader.
type policyReader struct{ server *Server }

func (p policyReader) resource(kind schema.GroupVersionKind) (*kinds.Resource, error) {
	resource := p.server.registry.OfKind(kind)
	if resource == nil {
		return nil, &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
	}
	return resource, nil
}

func (p policyReader) Get(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (*unstructured.Object, error) {
	resource, err := p.resource(kind)
	if err != nil {
		return nil, err
	}
	stored, exists := p.server.store.Get(store.Key{Group: resource.Group, Resource: resource.Plural, Namespace: namespace, Name: name})
	if !exists {
		return nil, nil
	}
	view, err := p.server.writer.View(ctx, resource, stored)
	return &unstructured.Object{Object: view}, err
}

func (p policyReader) List(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]*unstructured.Object, error) {
	resource, err := p.resource(kind)
	if err != nil {
		return nil, err
	}
	stored, _, err := p.server.store.List(resource.Group, resource.Plural, namespace, 0)
	if err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Object, len(stored))
	for i, obj := range stored {
		view, err := p.server.writer.View(ctx, resource, obj)
		if err != nil {
			return nil, err
		}
		objects[i] = &unstructured.Object{Object: view}
	}
	return objects, nil
}

func (p policyReader) IsNamespaced(kind schema.GroupVersionKind) (bool, error) {
	resource, err := p.resource(kind)
	return resource != nil && resource.Namespaced, err
}

func (p policyReader) Versions(resource schema.GroupVersionResource) map[schema.GroupVersionResource]schema.GroupVersionKind {
	versions := map[schema.GroupVersionResource]schema.GroupVersionKind{}
	for _, version := range p.server.registry.Versions(resource.Group, resource.Resource) {
		if version.Definition != nil || version.Version == resource.Version {
			versions[version.GroupVersionResource()] = version.GroupVersionKind()
		}
	}
	return versions
}

func (p policyReader) Convert(ctx context.Context, obj *unstructured.Object, kind schema.GroupVersionKind) (*unstructured.Object, error) {
	resource, err := p.resource(kind)
	if err != nil {
		return nil, err
	}
	converted := &unstructured.Object{Object: runtime.DeepCopyJSON(obj.Object)}
	err = p.server.admission.Convert(ctx, resource.Definition, converted.Object, kind.GroupVersion().String())
	return converted, err
}

func (p policyReader) TypeConverter(kind schema.GroupVersionKind) (managedfields.TypeConverter, error) {
	resource, err := p.resource(kind)
	if err != nil {
		return nil, err
	}
	return resource.TypeConverter()
}

func (p policyReader) IsAllowed(user User, request AccessRequest) bool {
	allowed, _ := p.server.access.Allowed(&access.User{Name: user.Name, UID: user.UID, Groups: user.Groups, Extra: user.Extra}, access.Attributes(request))
	return allowed
}

// policies returns the steps of admission by Options.Policies, or nil.
func (s *Server) policies() (mutate, validate admission.Func) {
	evaluator := s.options.Policies
	if evaluator == nil {
		return nil, nil
	}
	mutate = admissionFunc(func(ctx context.Context, request *AdmissionRequest) error {
		return evaluator.Mutate(ctx, policyReader{s}, request)
	}, true)
	validate = admissionFunc(func(ctx context.Context, request *AdmissionRequest) error {
		return evaluator.Validate(ctx, policyReader{s}, request)
	}, false)
	return mutate, validate
}
