package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// mergePatch is the difference of two versions of an object as a JSON merge patch. A merge patch replaces whole lists: to keep
// concurrent changes, it is sent only while the replaced lists are unchanged.
type mergePatch struct {
	content map[string]any
	lists   []replacedList
}

// replacedList is a list replaced by the patch.
type replacedList struct {
	path   []string
	before any
}

func newMergePatch(before, after map[string]any) *mergePatch {
	p := &mergePatch{}
	p.content = p.diff(before, after, nil)
	return p
}

func (p *mergePatch) isEmpty() bool { return len(p.content) == 0 }

func (p *mergePatch) diff(before, after map[string]any, path []string) map[string]any {
	changes := map[string]any{}
	for key, old := range before {
		if _, found := after[key]; !found {
			changes[key] = nil
			p.replaces(path, key, old)
		}
	}
	for key, value := range after {
		old, found := before[key]
		if found && reflect.DeepEqual(old, value) {
			continue
		}
		at := append(path[:len(path):len(path)], key)
		oldMap, oldIsMap := old.(map[string]any)
		newMap, newIsMap := value.(map[string]any)
		if oldIsMap && newIsMap {
			changes[key] = p.diff(oldMap, newMap, at)
			continue
		}
		p.replaces(path, key, old)
		changes[key] = value
	}
	return changes
}

// replaces records a replaced value if it is a list.
func (p *mergePatch) replaces(path []string, key string, old any) {
	if list, isList := old.([]any); isList {
		p.lists = append(p.lists, replacedList{path: append(path[:len(path):len(path)], key), before: list})
	}
}

// send sends the patch and returns the changed object. It retries conflicts with the current resourceVersion.
func (p *mergePatch) send(ctx context.Context, t *resource.Info, opts *metav1.PatchOptions) (changed *unstructured.Object, err error) {
	err = dynamic.RetryOnConflict(ctx, func(ctx context.Context) error {
		content := p.content
		if len(p.lists) > 0 {
			current, err := t.Resource.Get(ctx, t.Name, nil)
			if err != nil {
				return err
			}
			if err := p.checkLists(current); err != nil {
				return err
			}
			content = withResourceVersion(content, current.GetResourceVersion())
		}
		body, err := json.Marshal(content)
		if err != nil {
			return err
		}
		changed, err = t.Resource.Patch(ctx, t.Name, types.MergePatchType, body, opts)
		return err
	})
	return changed, err
}

// checkLists returns an error if a replaced list has changed.
func (p *mergePatch) checkLists(current *unstructured.Object) error {
	for _, list := range p.lists {
		if !reflect.DeepEqual(nested.Value(current.Object, list.path...), list.before) {
			return fmt.Errorf(".%s was changed on the server since it was read: %w", strings.Join(list.path, "."), errListChanged)
		}
	}
	return nil
}

// errListChanged is the cause of a patch rejected by checkLists.
var errListChanged = errors.New("read the object again")

// withResourceVersion returns a copy of a patch with metadata.resourceVersion as precondition. An existing resourceVersion is
// kept.
func withResourceVersion(content map[string]any, version string) map[string]any {
	metadata := nested.Map(content, "metadata")
	if _, found := metadata["resourceVersion"]; found {
		return content
	}
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["resourceVersion"] = version
	content = maps.Clone(content)
	content["metadata"] = metadata
	return content
}
