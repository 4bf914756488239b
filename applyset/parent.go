package applyset

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// Labels and annotations of KEP-3659.
const (
	// PartOfLabel is the label of members. Its value is [Parent.ID].
	PartOfLabel = "applyset.kubernetes.io/part-of"

	idLabel                        = "applyset.kubernetes.io/id"
	toolingAnnotation              = "applyset.kubernetes.io/tooling"
	kindsAnnotation                = "applyset.kubernetes.io/contains-group-kinds"
	additionalNamespacesAnnotation = "applyset.kubernetes.io/additional-namespaces"
	isParentTypeLabel              = "applyset.kubernetes.io/is-parent-type"
)

// lockAnnotation is the lock of the run that writes.
const lockAnnotation = "applyset.anykind.dev/lock"

// tooling is the value of toolingAnnotation. The part in front of the slash names the tool.
const tooling = toolName + "/v1"

const toolName = "anykind"

// Parent names the object that records a set.
type Parent struct {
	// Kind is Secret by default. Further kinds are ConfigMap and custom resources whose definition has the label
	// applyset.kubernetes.io/is-parent-type. A Secret or ConfigMap is created if it does not exist.
	Kind schema.GroupKind
	// Namespace is empty for a cluster-scoped parent. Of a Secret or ConfigMap it is the namespace of the client's config by default.
	Namespace, Name string
}

// ID returns the label value of the members: "applyset-" + base64(sha256(NAME.NAMESPACE.KIND.GROUP)) + "-v1", the base64 without
// padding and safe for URLs.
func (p Parent) ID() string {
	hash := sha256.Sum256([]byte(p.key()))
	return "applyset-" + base64.RawURLEncoding.EncodeToString(hash[:]) + "-v1"
}

func (p Parent) key() string {
	kind := p.kind()
	return strings.Join([]string{p.Name, p.Namespace, kind.Kind, kind.Group}, ".")
}

func (p Parent) kind() schema.GroupKind {
	return cmp.Or(p.Kind, schema.GroupKind{Kind: "Secret"})
}

func (p Parent) isBuiltin() bool {
	kind := p.kind()
	return kind.Group == "" && (kind.Kind == "Secret" || kind.Kind == "ConfigMap")
}

// String returns kind, namespace and name: Secret "shop/web".
func (p Parent) String() string { return p.Reference().String() }

// Reference returns kind, namespace and name, with the default kind.
func (p Parent) Reference() Reference {
	return Reference{Kind: p.kind(), Namespace: p.Namespace, Name: p.Name}
}

// scope is the recorded extent of a set: its kinds and the namespaces of its members.
type scope struct {
	kinds      map[schema.GroupKind]bool
	namespaces map[string]bool
}

func newScope() scope {
	return scope{kinds: map[schema.GroupKind]bool{}, namespaces: map[string]bool{}}
}

func (s scope) add(ref Reference) {
	s.kinds[ref.Kind] = true
	if ref.Namespace != "" {
		s.namespaces[ref.Namespace] = true
	}
}

func (s scope) union(other scope) scope {
	all := scope{kinds: maps.Clone(s.kinds), namespaces: maps.Clone(s.namespaces)}
	maps.Copy(all.kinds, other.kinds)
	maps.Copy(all.namespaces, other.namespaces)
	return all
}

func (s scope) equal(other scope) bool {
	return maps.Equal(s.kinds, other.kinds) && maps.Equal(s.namespaces, other.namespaces)
}

func (s scope) sortedKinds() []schema.GroupKind {
	kinds := slices.Collect(maps.Keys(s.kinds))
	sort.Slice(kinds, func(i, j int) bool { return kinds[i].String() < kinds[j].String() })
	return kinds
}

// parentState is the parent as read.
type parentState struct {
	object   *unstructured.Object // nil if it does not exist
	recorded scope                // includes the parent's namespace only if a member is known to be there
	tooling  string
	lock     *lockRecord
}

// parentResource returns the handle on the parent's resource.
func (s *Set) parentResource(ctx context.Context) (*dynamic.Resource, error) {
	kind := s.parent.kind()
	resource, err := s.client.ForKind(ctx, kind.WithVersion(""))
	if err != nil {
		return nil, err
	}
	switch isNamespaced := resource.APIResource().Namespaced; {
	case isNamespaced && s.parent.Namespace == "":
		return nil, fmt.Errorf("the parent %s needs a namespace", s.parent)
	case !isNamespaced && s.parent.Namespace != "":
		return nil, fmt.Errorf("the parent %s has a namespace, but its kind is cluster-scoped", s.parent)
	case isNamespaced:
		return resource.Namespace(s.parent.Namespace), nil
	default:
		return resource, nil
	}
}

// readParent reads and checks the parent. A parent of another tool is an error.
func (s *Set) readParent(ctx context.Context) (*parentState, error) {
	state, err := s.getParent(ctx)
	if err != nil || state.object == nil {
		return state, err
	}
	if tool, _, _ := strings.Cut(state.tooling, "/"); tool != toolName {
		return nil, &ToolingError{s.parent, state.tooling}
	}
	return state, nil
}

// getParent reads the parent of any tool.
func (s *Set) getParent(ctx context.Context) (*parentState, error) {
	resource, err := s.parentResource(ctx)
	if err != nil {
		return nil, err
	}
	obj, err := resource.Metadata().Get(ctx, s.parent.Name, nil)
	if apierrors.IsNotFound(err) {
		if !s.parent.isBuiltin() {
			return nil, fmt.Errorf("the parent %s does not exist, and only a Secret or ConfigMap is created: %w", s.parent, err)
		}
		return &parentState{recorded: newScope()}, nil
	}
	if err != nil {
		return nil, err
	}
	if !s.parent.isBuiltin() {
		if err := s.checkParentType(ctx, resource); err != nil {
			return nil, err
		}
	}
	return s.decodeParent(obj)
}

// checkParentType returns an error unless the definition of a custom parent permits it.
func (s *Set) checkParentType(ctx context.Context, resource *dynamic.Resource) error {
	definitions, err := s.client.Resource(ctx, "customresourcedefinitions.apiextensions.k8s.io")
	if err != nil {
		return err
	}
	definition, err := definitions.Metadata().Get(ctx, resource.APIResource().GVR.GroupResource().String(), nil)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	permitted := false
	if err == nil {
		_, permitted = definition.GetLabels()[isParentTypeLabel]
	}
	if !permitted {
		return fmt.Errorf("%s cannot be a parent: its CustomResourceDefinition lacks the label %s", s.parent.kind(), isParentTypeLabel)
	}
	return nil
}

func (s *Set) decodeParent(obj *unstructured.Object) (*parentState, error) {
	state := &parentState{object: obj, recorded: newScope()}
	annotations := obj.GetAnnotations()
	state.tooling = annotations[toolingAnnotation]
	kinds, hasKinds := annotations[kindsAnnotation]
	id := obj.GetLabels()[idLabel]
	switch {
	case state.tooling == "":
		return nil, fmt.Errorf("%s exists and is not the parent of a set: it lacks the annotation %s", s.parent, toolingAnnotation)
	case id != s.id:
		return nil, fmt.Errorf("the parent %s has the label %s with value %q instead of %q", s.parent, idLabel, id, s.id)
	case !hasKinds:
		return nil, fmt.Errorf("the parent %s lacks the annotation %s", s.parent, kindsAnnotation)
	}
	for _, kind := range splitList(kinds) {
		state.recorded.kinds[schema.ParseGroupKind(kind)] = true
	}
	for _, namespace := range splitList(annotations[additionalNamespacesAnnotation]) {
		state.recorded.namespaces[namespace] = true
	}
	if s.parent.Namespace != "" {
		state.recorded.namespaces[s.parent.Namespace] = true
	}
	if text := annotations[lockAnnotation]; text != "" {
		state.lock = &lockRecord{}
		if err := json.Unmarshal([]byte(text), state.lock); err != nil {
			return nil, fmt.Errorf("the parent %s: annotation %s: %w", s.parent, lockAnnotation, err)
		}
	}
	return state, nil
}

func splitList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

// parentMetadata returns the labels and annotations of a parent.
func (s *Set) parentMetadata(recorded scope, lock *lockRecord) map[string]any {
	kinds := make([]string, 0, len(recorded.kinds))
	for _, kind := range recorded.sortedKinds() {
		kinds = append(kinds, kind.String())
	}
	namespaces := slices.Sorted(maps.Keys(recorded.namespaces))
	namespaces = slices.DeleteFunc(namespaces, func(namespace string) bool { return namespace == s.parent.Namespace })
	text, _ := json.Marshal(lock) // cannot fail: strings and numbers
	annotations := map[string]any{
		toolingAnnotation: cmp.Or(s.tooling, tooling), kindsAnnotation: strings.Join(kinds, ","),
		additionalNamespacesAnnotation: strings.Join(namespaces, ","), lockAnnotation: string(text),
	}
	return map[string]any{"labels": map[string]any{idLabel: s.id}, "annotations": annotations}
}

// createParent creates the parent with the lock. An existing parent is an error for which apierrors.IsAlreadyExists holds.
func (s *Set) createParent(ctx context.Context, recorded scope, lock *lockRecord) (*unstructured.Object, error) {
	resource, err := s.parentResource(ctx)
	if err != nil {
		return nil, err
	}
	metadata := s.parentMetadata(recorded, lock)
	metadata["name"] = s.parent.Name
	metadata["namespace"] = s.parent.Namespace
	return resource.Create(ctx, &unstructured.Object{Object: map[string]any{"metadata": metadata}}, nil)
}

// updateParent changes the parent if it still has the resourceVersion. Otherwise apierrors.IsConflict holds for the error.
func (s *Set) updateParent(ctx context.Context, resourceVersion string, recorded scope, lock *lockRecord) (*unstructured.Object, error) {
	resource, err := s.parentResource(ctx)
	if err != nil {
		return nil, err
	}
	metadata := s.parentMetadata(recorded, lock)
	metadata["resourceVersion"] = resourceVersion
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return nil, err
	}
	return resource.Metadata().Patch(ctx, s.parent.Name, types.MergePatchType, patch, nil)
}

// deleteParent deletes a parent that has nothing but the record. Of any other parent it removes the record.
func (s *Set) deleteParent(ctx context.Context, resourceVersion string) error {
	resource, err := s.parentResource(ctx)
	if err != nil {
		return err
	}
	whole, err := resource.Get(ctx, s.parent.Name, nil)
	if err != nil {
		return err
	}
	if whole.GetResourceVersion() != resourceVersion {
		return fmt.Errorf("the parent %s was changed meanwhile", s.parent)
	}
	if s.parent.isBuiltin() && isEmpty(whole.Object["data"]) && isEmpty(whole.Object["binaryData"]) {
		preconditions := &metav1.Preconditions{ResourceVersion: &resourceVersion}
		_, err = resource.Delete(ctx, s.parent.Name, &metav1.DeleteOptions{Preconditions: preconditions})
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": resourceVersion, "labels": map[string]any{idLabel: nil},
		"annotations": map[string]any{
			toolingAnnotation: nil, kindsAnnotation: nil, additionalNamespacesAnnotation: nil, lockAnnotation: nil,
		},
	}})
	if err != nil {
		return err
	}
	_, err = resource.Patch(ctx, s.parent.Name, types.MergePatchType, patch, nil)
	return err
}
