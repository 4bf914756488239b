package applyset

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/generated"
	"github.com/anykind/anykind/internal/parallel"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

// member is an object of the set: to apply, in the cluster, or both.
type member struct {
	Reference

	// want is the object to apply, nil if it left the set. dependencies are members with an object to apply.
	want         *unstructured.Object
	dependencies []*member
	// live is the object in the cluster, nil if it does not exist or is not a member yet.
	live *unstructured.Object
	// resource is nil until the kind is served.
	resource *dynamic.Resource
	drifts   []FieldDrift
	position string
	failed   bool
	kept     string // reason why a member that left the set is not deleted
}

// desired is the objects to apply.
type desired struct {
	members map[Reference]*member
	inOrder []*member // of the objects
	stages  [][]*member
	scope   scope
}

// desire validates objects and finds their resources. It sends no request if discovery is up to date.
func (s *Set) desire(ctx context.Context, objects []*manifest.Object) (*desired, error) {
	d := &desired{members: map[Reference]*member{}, scope: newScope()}
	if err := manifest.Validate(objects, s.opts.Namespace); err != nil {
		return nil, err
	}
	plain := make([]*unstructured.Object, len(objects))
	for i, obj := range objects {
		plain[i] = obj.Object
	}
	definitions := definedKinds(plain)
	prepared := make([]*unstructured.Object, 0, len(objects))
	byObject := map[*unstructured.Object]*member{}
	var errs []error
	for _, obj := range objects {
		m, err := s.desireObject(ctx, obj.Object, definitions)
		if err == nil && d.members[m.Reference] != nil {
			err = errors.New("it occurs twice: its kind is cluster-scoped")
		}
		if err != nil {
			ref := ReferenceTo(obj.Object)
			errs = append(errs, &ObjectError{Object: ref, Position: obj.Position(), Err: err})
			continue
		}
		m.position = obj.Position()
		d.members[m.Reference] = m
		d.inOrder = append(d.inOrder, m)
		d.scope.add(m.Reference)
		prepared = append(prepared, m.want)
		byObject[m.want] = m
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	plan, err := dynamic.InstallOrder(prepared, s.opts.Namespace)
	if err != nil {
		return nil, err
	}
	for _, stage := range plan.Stages {
		var members []*member
		for _, obj := range stage {
			m := byObject[obj]
			for _, dependency := range plan.Dependencies[obj] {
				m.dependencies = append(m.dependencies, byObject[dependency])
			}
			members = append(members, m)
		}
		d.stages = append(d.stages, members)
	}
	return d, nil
}

func (s *Set) desireObject(ctx context.Context, obj *unstructured.Object, definitions map[schema.GroupKind]bool) (*member, error) {
	kind := obj.GroupVersionKind()
	m := &member{Reference: ReferenceTo(obj)}
	if err := checkMetadata(obj); err != nil {
		return nil, err
	}
	if obj.GetLabels()[PartOfLabel] != "" {
		return nil, fmt.Errorf("it already has the label %s (remove it)", PartOfLabel)
	}
	resource, err := s.client.ForKind(ctx, kind)
	isNamespaced, isDefined := definitions[m.Kind]
	var noMatch *restmapper.NoMatchError
	switch {
	case err == nil:
		m.resource = resource
		isNamespaced = resource.APIResource().Namespaced
	case !errors.As(err, &noMatch) || !isDefined:
		return nil, err
	}
	switch {
	case !isNamespaced:
		m.Namespace = ""
	case m.Namespace == "":
		m.Namespace = s.opts.Namespace
	}
	if m.Reference == s.parent.Reference() {
		return nil, errors.New("it is the parent of the set")
	}
	m.want = s.prepare(obj, m.Namespace)
	m.setResource(resource)
	return m, nil
}

// checkMetadata returns an error for labels and a namespace of a wrong type: prepare would replace them, and the server would not
// report them.
func checkMetadata(obj *unstructured.Object) error {
	_, _, labelsErr := unstructured.Get[map[string]string](obj, "metadata", "labels")
	_, _, namespaceErr := unstructured.Get[string](obj, "metadata", "namespace")
	return cmp.Or(labelsErr, namespaceErr)
}

func (m *member) setResource(resource *dynamic.Resource) {
	if resource != nil && m.Namespace != "" {
		resource = resource.Namespace(m.Namespace)
	}
	m.resource = resource
}

// hasStatus reports whether the kind has the subresource status.
func (m *member) hasStatus() bool {
	if m.resource == nil {
		return false
	}
	_, found := m.resource.APIResource().Subresource("status")
	return found
}

// prepare returns a copy of obj with the label of the set. The copy shares all maps with obj except for metadata and data. A Secret's
// stringData becomes data: the API server stores only data, and would not keep the ownership of stringData.
func (s *Set) prepare(obj *unstructured.Object, namespace string) *unstructured.Object {
	copied := &unstructured.Object{Object: maps.Clone(obj.Object)}
	copied.Object["metadata"] = cloneField(obj, "metadata")
	copied.SetNamespace(namespace)
	labels := copied.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[PartOfLabel] = s.id
	copied.SetLabels(labels)
	copied.SetManagedFields(nil)
	if text, isMap := copied.Object["stringData"].(map[string]any); isMap && isSecret(obj) {
		data := cloneField(obj, "data")
		for name, value := range text {
			value, isText := value.(string)
			if !isText {
				return copied // the API server rejects it
			}
			data[name] = base64.StdEncoding.EncodeToString([]byte(value))
		}
		copied.Object["data"] = data
		delete(copied.Object, "stringData")
	}
	return copied
}

// cloneField returns a copy of the map in a field, and an empty map for a missing field.
func cloneField(obj *unstructured.Object, name string) map[string]any {
	fields, _ := obj.Object[name].(map[string]any)
	if fields == nil {
		return map[string]any{}
	}
	return maps.Clone(fields)
}

// definedKinds maps the kinds that CustomResourceDefinitions and APIServices among objects define to their scope: true means
// namespaced. The scope of an APIService's kind is that of its objects.
func definedKinds(objects []*unstructured.Object) map[schema.GroupKind]bool {
	kinds := map[schema.GroupKind]bool{}
	groups := map[string]bool{}
	for _, obj := range objects {
		if kind, isDefinition := dynamic.DefinedKind(obj); isDefinition {
			scope, _, _ := unstructured.Get[string](obj, "spec", "scope") // the API server reports a wrong type
			kinds[kind] = scope == "Namespaced"
		} else if obj.GroupVersionKind().GroupKind().String() == "APIService.apiregistration.k8s.io" {
			group, _, _ := unstructured.Get[string](obj, "spec", "group")
			groups[group] = true
		}
	}
	for _, obj := range objects {
		kind := obj.GroupVersionKind().GroupKind()
		if _, isDefined := kinds[kind]; !isDefined && groups[kind.Group] {
			kinds[kind] = obj.GetNamespace() != ""
		}
	}
	return kinds
}

// readMembers lists the objects of the set by kind. It adds them to the members of d and returns the members that left the set.
// Kinds that are not served any more have no objects if their definition is gone.
func (s *Set) readMembers(ctx context.Context, recorded scope, d *desired) (left []*member, err error) {
	all := recorded.union(d.scope)
	versions := map[schema.GroupKind]*dynamic.Resource{}
	for _, m := range d.members {
		m.live = nil
		m.drifts = nil
		if m.resource != nil {
			versions[m.Kind] = m.resource
		}
	}
	var mu sync.Mutex
	kinds := all.sortedKinds()
	errs := make([]error, len(kinds))
	s.parallel(len(kinds), func(i int) {
		errs[i] = s.readKind(ctx, kinds[i], versions[kinds[i]], all, func(obj *unstructured.Object, resource *dynamic.Resource) {
			mu.Lock()
			defer mu.Unlock()
			ref := Reference{Kind: kinds[i], Namespace: obj.GetNamespace(), Name: obj.GetName()}
			m := d.members[ref]
			if m == nil {
				m = &member{Reference: ref}
				left = append(left, m)
			}
			if m.resource == nil { // it left the set, or its kind is served since desire
				m.setResource(resource)
			}
			m.live = obj
		})
	})
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	slices.SortFunc(left, func(a, b *member) int { return a.compare(b.Reference) })
	manager := s.FieldManager()
	for _, m := range d.members {
		if m.live != nil {
			m.drifts = compare(m.want, m.live, manager, m.hasStatus())
		}
	}
	return left, nil
}

// parallel calls work for each index, with the workers of the set.
func (s *Set) parallel(count int, work func(i int)) { parallel.Do(s.opts.Workers, count, work) }

// readKind calls add for each member of a kind in the recorded namespaces. resource may be nil.
func (s *Set) readKind(ctx context.Context, kind schema.GroupKind, resource *dynamic.Resource, all scope,
	add func(*unstructured.Object, *dynamic.Resource),
) error {
	if resource == nil {
		var err error
		if resource, err = s.servedKind(ctx, kind); resource == nil || err != nil {
			return err
		}
	}
	if !resource.APIResource().Supports("list") {
		return fmt.Errorf("%s cannot be a member: the server does not list it", kind)
	}
	return s.eachHandle(ctx, resource, all, func(ctx context.Context, handle *dynamic.Resource) error {
		return s.list(ctx, handle, all, add)
	})
}

// eachHandle calls read for a handle that selects the recorded namespaces: the only namespace, or all. If reading all namespaces is
// forbidden, it calls read for each recorded namespace, concurrently.
func (s *Set) eachHandle(ctx context.Context, resource *dynamic.Resource, all scope, read func(context.Context, *dynamic.Resource) error) error {
	namespaces := slices.Sorted(maps.Keys(all.namespaces))
	switch {
	case !resource.APIResource().Namespaced:
		return read(ctx, resource)
	case len(namespaces) == 0:
		return nil
	case len(namespaces) == 1:
		return read(ctx, resource.Namespace(namespaces[0]))
	}
	err := read(ctx, resource.AllNamespaces())
	if !apierrors.IsForbidden(err) {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(namespaces))
	var wg sync.WaitGroup
	for i, namespace := range namespaces {
		wg.Go(func() {
			if errs[i] = read(ctx, resource.Namespace(namespace)); errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s *Set) list(ctx context.Context, handle *dynamic.Resource, all scope, add func(*unstructured.Object, *dynamic.Resource)) error {
	for obj, err := range handle.List(ctx, &metav1.ListOptions{LabelSelector: s.selector()}) {
		if err != nil {
			return err
		}
		if generated.IsEndpoints(handle.APIResource().GVK.GroupKind(), obj) {
			continue // they have the labels of their Service, which may be a member
		}
		if namespace := obj.GetNamespace(); namespace == "" || all.namespaces[namespace] {
			add(obj, handle)
		}
	}
	return nil
}

func (s *Set) selector() string { return PartOfLabel + "=" + s.id }

// servedKind returns the handle on a kind. It returns nil if the kind is not served and no CustomResourceDefinition defines it: its
// objects are gone with the definition. The kind of an existing definition may be served a moment later.
func (s *Set) servedKind(ctx context.Context, kind schema.GroupKind) (*dynamic.Resource, error) {
	resource, err := s.client.ForKind(ctx, kind.WithVersion(""))
	var noMatch *restmapper.NoMatchError
	if !errors.As(err, &noMatch) {
		return resource, err
	}
	isDefined, err := s.isDefined(ctx, kind)
	if err != nil {
		return nil, fmt.Errorf("find out whether %s has objects: %w", kind, err)
	}
	if !isDefined {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, servedTimeout)
	defer cancel()
	resources, err := s.client.WaitForKinds(ctx, kind.WithVersion(""))
	if err != nil {
		return nil, err
	}
	return resources[0], nil
}

// servedTimeout limits the wait for a kind with a CustomResourceDefinition.
const servedTimeout = 30 * time.Second

func (s *Set) isDefined(ctx context.Context, kind schema.GroupKind) (bool, error) {
	definitions, err := s.client.Resource(ctx, "customresourcedefinitions.apiextensions.k8s.io")
	if err != nil {
		return false, err
	}
	for definition, err := range definitions.List(ctx, nil) {
		if err != nil {
			return false, err
		}
		if _, found := definedKinds([]*unstructured.Object{definition})[kind]; found {
			return true, nil
		}
	}
	return false, nil
}
