// Package write implements the API server's write path without HTTP: create, update, patch, apply and delete with their rules for
// metadata, managed fields, subresources and admission.
//
// A write is a loop: read the stored object, compute the new object from a copy, store it if the stored object has not changed,
// or retry. Stored objects are never modified.
package write

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/access"
	"github.com/anykind/anykind/apitest/internal/admission"
	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/limits"
	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
)

// Config has the dependencies of a Writer.
type Config struct {
	Store     *store.Store
	Registry  *kinds.Registry
	Admission *admission.Admission // nil: the default plugins only
	Access    *access.Access       // nil: everything is allowed
	Now       func() time.Time     // nil: time.Now
	Seed      uint64               // of UIDs and generated names; 0: random
}

// Writer executes writes. It is safe for concurrent use.
type Writer struct {
	store     *store.Store
	registry  *kinds.Registry
	admission *admission.Admission
	access    *access.Access
	now       func() time.Time
	kinds     kindCache
	random    *random
}

// New returns a Writer.
func New(config Config) *Writer {
	w := &Writer{store: config.Store, registry: config.Registry, admission: config.Admission, access: config.Access, now: config.Now, random: newRandom(config.Seed)}
	w.kinds.kinds = map[schema.GroupVersionResource]*cachedKind{}
	if w.admission == nil {
		w.admission = admission.New(admission.Config{Store: w.store, Registry: w.registry, Access: w.access, DisableWebhooks: true})
	}
	if w.now == nil {
		w.now = time.Now
	}
	return w
}

// Request is a write to a resource. Name is empty for deletecollection and for create, except for subresources such as eviction.
type Request struct {
	Resource    *kinds.Resource
	Subresource string
	Namespace   string
	Name        string
	Query       url.Values // the options of the verb, from the request's URL
	User        access.User
	UserAgent   string // default of the field manager
}

// Body is the body of a request. Its media type is application/json, application/yaml or a patch type. Object, if not nil, is the
// decoded content and replaces Data; it is not modified. Err is the decoding error of Data.
type Body struct {
	Data      []byte
	MediaType string
	Object    map[string]any
	Err       error
}

// Result is the outcome of a write. Warnings may be set with an error, Object and Code only without. Object is a Status for most
// deletions, otherwise the object in the request's version.
type Result struct {
	Object   map[string]any
	Code     int
	Warnings []string
}

const (
	optimisticLockMessage = "the object has been modified; please apply your changes to the latest version and try again"
	namespaceMismatch     = "the namespace of the provided object does not match the namespace sent on the request"
)

// statusError converts err to a Status. Other errors become an internal error without a reason.
func statusError(err error) error {
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(),
	}}
}

// rules are the kind-specific parts of a write. The methods modify obj; old is read-only.
type rules interface {
	// coerce decodes obj: it sets defaults, removes unknown fields and returns a text for each removed field. err is a decoding
	// error, such as a number in place of a string. obj may be modified.
	coerce(op *operation, obj map[string]any) (decoded map[string]any, unknown []string, err error)
	// fromStorage converts a stored object to the resource's version. toStorage converts it to the storage version.
	fromStorage(ctx context.Context, obj map[string]any) error
	toStorage(ctx context.Context, obj map[string]any) error
	// setDefaults sets defaults only.
	setDefaults(obj map[string]any)
	// prepareCreate and prepareUpdate reset fields ignored in the request, and set the generation.
	prepareCreate(op *operation, obj *unstructuredv1.Unstructured)
	prepareUpdate(op *operation, obj, old *unstructuredv1.Unstructured)
	// validate returns the validation errors of obj. old is nil for a creation.
	validate(op *operation, obj, old *unstructuredv1.Unstructured) field.ErrorList
	// strategy returns the properties of the kind.
	strategy() *strategy
}

// kindCache has what is derived from a resource at its first write. A redefined resource is a new *kinds.Resource and replaces the
// entry.
type kindCache struct {
	mu    sync.Mutex
	kinds map[schema.GroupVersionResource]*cachedKind
}

type cachedKind struct {
	resource *kinds.Resource
	rules    rules
	mu       sync.Mutex
	managers map[string]*managedfields.FieldManager // by subresource
}

func (w *Writer) rulesOf(resource *kinds.Resource) rules { return w.kindOf(resource).rules }

func (w *Writer) kindOf(resource *kinds.Resource) *cachedKind {
	key := resource.GroupVersionResource()
	w.kinds.mu.Lock()
	defer w.kinds.mu.Unlock()
	if cached := w.kinds.kinds[key]; cached != nil && cached.resource == resource {
		return cached
	}
	kind := &cachedKind{resource: resource, managers: map[string]*managedfields.FieldManager{}}
	if resource.Definition != nil {
		kind.rules = newCustomRules(w, resource)
	} else {
		kind.rules = newBuiltinRules(resource)
	}
	w.kinds.kinds[key] = kind
	return kind
}

// operation is the execution of one request.
type operation struct {
	*Writer
	ctx         context.Context
	req         *Request
	resource    *kinds.Resource
	subresource string
	rules       rules
	options     writeOptions
	manager     string // field manager
	isPost      bool   // a create by POST, not by update or apply
	isApply     bool
	warnings    []string
	isOfMany    bool // part of a deletecollection
	isUntyped   bool // the body is a Scale without an apiVersion
}

func (w *Writer) begin(ctx context.Context, req *Request) *operation {
	return &operation{Writer: w, ctx: ctx, req: req, resource: req.Resource, subresource: req.Subresource, rules: w.rulesOf(req.Resource)}
}

func (op *operation) warn(text string) {
	if text != "" && !slices.Contains(op.warnings, text) {
		op.warnings = append(op.warnings, text)
	}
}

// warnNotValidated adds a warning about something that the server does not implement, unless text is "".
func (op *operation) warnNotValidated(text string) {
	if text != "" {
		op.warn("apitest: not validated: " + text)
	}
}

// finish adds the warnings and converts the error to a Status.
func (op *operation) finish(result *Result, err *error) {
	result.Warnings = op.warnings
	*err = statusError(*err)
}

func (op *operation) groupResource() schema.GroupResource { return op.resource.GroupResource() }

func (op *operation) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: op.resource.Group, Kind: op.resource.Kind}
}

// kind returns the GVK of the request body: the subresource's GVK if it has its own.
func (op *operation) kind() schema.GroupVersionKind {
	if sub, ok := op.resource.Subresources[op.subresource]; ok && sub.Kind != "" && sub.Kind != op.resource.Kind {
		return schema.GroupVersionKind{Group: sub.Group, Version: sub.Version, Kind: sub.Kind}
	}
	return op.resource.GroupVersionKind()
}

func (op *operation) key(name string) store.Key { return keyOf(op.resource, op.req.Namespace, name) }

func keyOf(resource *kinds.Resource, namespace, name string) store.Key {
	if !resource.Namespaced {
		namespace = ""
	}
	return store.Key{Group: resource.Group, Resource: resource.Plural, Namespace: namespace, Name: name}
}

// objectNamespace returns the namespace of the request's objects, "" for a cluster-scoped resource.
func (op *operation) objectNamespace() string {
	if op.resource.Namespaced {
		return op.req.Namespace
	}
	return ""
}

// view returns a copy of a stored object in the request's version.
func (op *operation) view(stored store.Object) (*unstructuredv1.Unstructured, error) {
	obj, err := op.viewOf(op.ctx, op.resource, stored)
	return &unstructuredv1.Unstructured{Object: obj}, err
}

// shown returns a written object as shown in responses.
func (op *operation) shown(stored store.Object) (*unstructuredv1.Unstructured, error) {
	obj, err := op.view(stored)
	return op.asRead(obj), err
}

// View returns a stored object in the version of a resource. The result is read-only: it may be the stored object itself. An error
// is that of a conversion webhook.
func (w *Writer) View(ctx context.Context, resource *kinds.Resource, stored store.Object) (map[string]any, error) {
	if resource.Definition == nil && stored["apiVersion"] == resource.APIVersion() {
		return asRead(resource, stored), nil
	}
	obj, err := w.viewOf(ctx, resource, stored)
	return asRead(resource, obj), err
}

// asRead returns an object as shown in responses: a service of type ExternalName loses fields of its earlier type. Responses to
// deletions with finalizers do not use it.
func asRead(resource *kinds.Resource, obj map[string]any) map[string]any {
	if resource.Group != "" || resource.Plural != "services" {
		return obj
	}
	spec := nested.Map(obj, "spec")
	if spec["type"] != "ExternalName" || spec["internalTrafficPolicy"] == nil {
		return obj
	}
	obj = maps.Clone(obj)
	spec = maps.Clone(spec)
	delete(spec, "internalTrafficPolicy")
	obj["spec"] = spec
	return obj
}

func (w *Writer) viewOf(ctx context.Context, resource *kinds.Resource, stored store.Object) (map[string]any, error) {
	obj := runtime.DeepCopyJSON(stored)
	return obj, w.rulesOf(resource).fromStorage(ctx, obj)
}

func (op *operation) asRead(obj *unstructuredv1.Unstructured) *unstructuredv1.Unstructured {
	return &unstructuredv1.Unstructured{Object: asRead(op.resource, obj.Object)}
}

// toStorage returns the object in its storage version, without a resourceVersion.
func (op *operation) toStorage(obj *unstructuredv1.Unstructured) (store.Object, error) {
	stored := obj.DeepCopy()
	err := op.rules.toStorage(op.ctx, stored.Object)
	stored.SetResourceVersion("")
	stored.SetSelfLink("")
	return stored.Object, err
}

// encode returns an object for the store. An object above etcd's limit loses its managedFields, except in an apply.
func (op *operation) encode(u *unstructuredv1.Unstructured) (store.Object, error) {
	obj, err := op.toStorage(u)
	if err != nil {
		return nil, err
	}
	err = limits.CheckStored(obj)
	if err == nil || op.isApply {
		return obj, err
	}
	delete(nested.Map(obj, "metadata"), "managedFields")
	return obj, limits.CheckStored(obj)
}

func storageVersion(resource *kinds.Resource) string {
	stored := schema.GroupVersion{Group: resource.Group, Version: cmp.Or(resource.StorageVersion, resource.Version)}
	if stored.Group == "events.k8s.io" { // its Events are stored with those of the core group
		stored.Group = ""
	}
	return stored.String()
}

// empty returns an object of the request's kind without content, in place of a missing object.
func (op *operation) empty() *unstructuredv1.Unstructured {
	obj := &unstructuredv1.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(op.kind())
	return obj
}
