package applyset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/managedfields"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/unstructured"
)

// lastAppliedAnnotation has the configuration of kubectl's client-side apply.
const lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// migration moves fields to a manager.
type migration struct {
	client  *dynamic.Client
	manager string
	selects func(metav1.ManagedFieldsEntry) bool
}

// metadata returns the metadata to change in an object, empty if the manager already has the fields. reason names fields that stay.
func (m migration) metadata(ctx context.Context, resource *dynamic.Resource, live *unstructured.Object) (metadata map[string]any, reason string, err error) {
	entries, err := managedfields.Read(live.Object)
	if err != nil {
		return nil, "", err
	}
	result, err := managedfields.Migration{
		Manager: m.manager, APIVersion: live.GetAPIVersion(),
		Moves: func(e managedfields.Entry) bool { return m.selects(e.ManagedFieldsEntry()) },
		Object: func(apiVersion string) (map[string]any, error) {
			return m.inVersion(ctx, resource, live, apiVersion)
		},
	}.Migrate(entries)
	if err != nil {
		return nil, "", err
	}
	metadata = map[string]any{}
	if len(result.Moved) > 0 {
		metadata["managedFields"] = managedfields.Encode(result.Entries)
		if _, found := live.GetAnnotations()[lastAppliedAnnotation]; found && !m.isOwned(result.Entries, lastAppliedField) {
			metadata["annotations"] = map[string]any{lastAppliedAnnotation: nil}
		}
	}
	return metadata, describeLeft(result.Left), nil
}

var lastAppliedField = []string{"f:metadata", "f:annotations", "f:" + lastAppliedAnnotation}

// isOwned reports whether a different manager owns a field.
func (m migration) isOwned(entries []managedfields.Entry, path []string) bool {
	return slices.ContainsFunc(entries, func(e managedfields.Entry) bool {
		return e.Manager != m.manager && managedfields.Contains(e.Fields, managedfields.Path(path...))
	})
}

// inVersion returns an object in a version, and nil if the server does not serve the version. A changed object is a conflict.
func (m migration) inVersion(ctx context.Context, resource *dynamic.Resource, live *unstructured.Object, apiVersion string) (map[string]any, error) {
	if apiVersion == live.GetAPIVersion() {
		return live.Object, nil
	}
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, err
	}
	versioned, err := m.client.ForKind(ctx, version.WithKind(live.GetKind()))
	var noMatch *restmapper.NoMatchError
	switch {
	case errors.As(err, &noMatch):
		return nil, nil
	case err != nil:
		return nil, err
	case live.GetNamespace() != "":
		versioned = versioned.Namespace(live.GetNamespace())
	}
	obj, err := versioned.Get(ctx, live.GetName(), nil)
	if err != nil {
		return nil, err
	}
	if obj.GetResourceVersion() != live.GetResourceVersion() {
		return nil, apierrors.NewConflict(resource.APIResource().GVR.GroupResource(), live.GetName(), errors.New("it was changed meanwhile"))
	}
	return obj.Object, nil
}

// describeLeft names the entries with fields that stay.
func describeLeft(left []managedfields.Entry) string {
	var texts []string
	for _, e := range left {
		var fields []string
		for _, path := range managedfields.Paths(e.Fields) {
			fields = append(fields, fieldPath(path))
		}
		texts = append(texts, fmt.Sprintf("%q keeps %s of version %s, which the version of the other fields has elsewhere",
			e.Manager, strings.Join(fields, ", "), e.APIVersion))
	}
	return strings.Join(texts, "; ")
}

var errNotMigrated = errors.New("the server did not accept the new managedFields")

// send writes a patch and checks that the server has stored the new entries: it ignores malformed ones.
func (m migration) send(ctx context.Context, resource *dynamic.Resource, name string, patch []byte) (*unstructured.Object, error) {
	live, err := resource.Patch(ctx, name, types.MergePatchType, patch, nil)
	if err != nil {
		return nil, err
	}
	remaining, _, err := m.metadata(ctx, resource, live)
	if err == nil && remaining["managedFields"] != nil {
		err = errNotMigrated
	}
	return live, err
}
