package cel

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/unstructured"
)

// server has the interfaces of an API server that its policy dispatchers need, over the server of a test.
type server struct {
	ctx    context.Context //nolint:containedctx // of a single request; the dispatchers' interfaces pass none
	stored apitest.PolicyReader
}

var _ admission.ObjectInterfaces = &server{}

func (s *server) GetObjectCreater() runtime.ObjectCreater {
	return unstructuredscheme.NewUnstructuredCreator()
}
func (s *server) GetObjectTyper() runtime.ObjectTyper {
	return unstructuredscheme.NewUnstructuredObjectTyper()
}
func (s *server) GetObjectDefaulter() runtime.ObjectDefaulter {
	return unstructuredscheme.NewUnstructuredDefaulter()
}
func (s *server) GetObjectConvertor() runtime.ObjectConvertor { return convertor{s} }
func (s *server) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper {
	return equivalents{s}
}

// Authorize evaluates authorizer.allowed() of an expression.
func (s *server) Authorize(_ context.Context, a authorizer.Attributes) (decision authorizer.Decision, reason string, err error) {
	sender := apitest.User{Name: a.GetUser().GetName(), UID: a.GetUser().GetUID(), Groups: a.GetUser().GetGroups(), Extra: a.GetUser().GetExtra()}
	request := apitest.AccessRequest{Verb: a.GetVerb(), Path: a.GetPath()}
	if a.IsResourceRequest() {
		request = apitest.AccessRequest{
			Verb: a.GetVerb(), Group: a.GetAPIGroup(), Resource: a.GetResource(), Subresource: a.GetSubresource(), Namespace: a.GetNamespace(), Name: a.GetName(),
		}
	}
	if s.stored.IsAllowed(sender, request) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// GetTypeConverter returns the schema for an ApplyConfiguration, or nil.
func (s *server) GetTypeConverter(kind schema.GroupVersionKind) managedfields.TypeConverter {
	converter, err := s.stored.TypeConverter(kind)
	if err != nil {
		return nil
	}
	return converter
}

// Run is a method of patch.TypeConverterManager: schemas are always current.
func (s *server) Run(context.Context) {}

// convertor converts custom resources between versions.
type convertor struct{ *server }

// Convert converts in to the kind of out.
func (c convertor) Convert(in, out, _ any) error {
	from, ok := in.(*unstructuredv1.Unstructured)
	to, isUnstructured := out.(*unstructuredv1.Unstructured)
	if !ok || !isUnstructured {
		return fmt.Errorf("convert %T to %T: not supported", in, out)
	}
	if from.GroupVersionKind() == to.GroupVersionKind() {
		to.Object = from.Object
		return nil
	}
	converted, err := c.stored.Convert(c.ctx, &unstructured.Object{Object: from.Object}, to.GroupVersionKind())
	if err == nil {
		to.Object = converted.Object
	}
	return err
}

func (c convertor) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil // for typed objects only
}

func (c convertor) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (newLabel, newValue string, err error) {
	return label, value, nil
}

// equivalents has the versions of a custom resource, for matchPolicy Equivalent.
type equivalents struct{ *server }

func (e equivalents) EquivalentResourcesFor(resource schema.GroupVersionResource, _ string) []schema.GroupVersionResource {
	var all []schema.GroupVersionResource
	for version := range e.stored.Versions(resource) {
		all = append(all, version)
	}
	return all
}

func (e equivalents) KindFor(resource schema.GroupVersionResource, _ string) schema.GroupVersionKind {
	return e.stored.Versions(resource)[resource]
}

// namespaceLister reads the labels of namespaces.
type namespaceLister struct{ *server }

func (l namespaceLister) List(labels.Selector) ([]*corev1.Namespace, error) { return nil, nil }

func (l namespaceLister) Get(name string) (*corev1.Namespace, error) {
	obj, err := l.stored.Get(l.ctx, corev1.SchemeGroupVersion.WithKind("Namespace"), "", name)
	switch {
	case err != nil:
		return nil, err
	case obj == nil:
		return nil, fmt.Errorf("get namespace %q: %w", name, errNoNamespace)
	}
	namespace := &corev1.Namespace{}
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, namespace)
	return namespace, err
}

// parameters are the objects of a paramKind. They have the methods of an informer that the dispatchers use.
type parameters struct {
	cache.SharedIndexInformer

	server    *server
	kind      schema.GroupVersionKind
	namespace string // "" for all
}

func newParameters(ctx context.Context, stored apitest.PolicyReader, kind *admissionv1.ParamKind) (informers.GenericInformer, meta.RESTScope, error) {
	notFound := func() error {
		return fmt.Errorf("failed to find resource referenced by paramKind: '%v'", schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind))
	}
	parsed := schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)
	isNamespaced, err := stored.IsNamespaced(parsed)
	if err != nil {
		return nil, nil, notFound()
	}
	scope := meta.RESTScopeRoot
	if isNamespaced {
		scope = meta.RESTScopeNamespace
	}
	return &parameters{server: &server{ctx, stored}, kind: parsed}, scope, nil
}

func (p *parameters) Informer() cache.SharedIndexInformer { return p }
func (p *parameters) Lister() cache.GenericLister         { return p }
func (p *parameters) HasSynced() bool                     { return true }

func (p *parameters) ByNamespace(namespace string) cache.GenericNamespaceLister {
	return &parameters{server: p.server, kind: p.kind, namespace: namespace}
}

func (p *parameters) List(selector labels.Selector) ([]runtime.Object, error) {
	objects, err := p.server.stored.List(p.server.ctx, p.kind, p.namespace)
	if err != nil {
		return nil, err
	}
	var matching []runtime.Object
	for _, obj := range objects {
		if selector.Matches(labels.Set(obj.GetLabels())) {
			matching = append(matching, &unstructuredv1.Unstructured{Object: obj.Object})
		}
	}
	return matching, nil
}

func (p *parameters) Get(name string) (runtime.Object, error) {
	obj, err := p.server.stored.Get(p.server.ctx, p.kind, p.namespace, name)
	switch {
	case err != nil:
		return nil, err
	case obj != nil:
		return &unstructuredv1.Unstructured{Object: obj.Object}, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: p.kind.Group, Resource: p.kind.Kind}, name)
}

var (
	_ corelisters.NamespaceLister = namespaceLister{}
	_ informers.GenericInformer   = &parameters{}
)
