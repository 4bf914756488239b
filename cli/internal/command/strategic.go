package command

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/cli/internal/strategic"
	"github.com/anykind/anykind/unstructured"
)

// MergeStrategic returns obj with a strategic merge patch, merged by the keys of the server's schema of the kind. Custom kinds have
// none.
func (s *State) MergeStrategic(ctx context.Context, obj *unstructured.Object, patch []byte) (*unstructured.Object, error) {
	gvk := obj.GroupVersionKind()
	schemas, err := s.Connection.Schemas(ctx)
	if err != nil {
		return nil, err
	}
	kind, err := schemas.Kind(ctx, gvk)
	if err != nil {
		return nil, fmt.Errorf("read the merge keys of %s: %w", gvk.Kind, err)
	}
	if !strings.HasPrefix(kind.Name, "io.k8s.") {
		return nil, fmt.Errorf("strategic merge patch is not supported for %s locally, try --type merge", gvk)
	}
	var changes map[string]any
	if err := utiljson.Unmarshal(patch, &changes); err != nil {
		return nil, fmt.Errorf("decode the patch: %w", err)
	}
	merged, err := strategic.Apply(obj.DeepCopy().Object, changes, kind)
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(merged)
	if err != nil {
		return nil, err
	}
	return unstructured.Decode(encoded)
}
