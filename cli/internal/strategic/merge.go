// Package strategic applies strategic merge patches as kubectl does locally: with the merge keys of a kind's schema, and with the
// directives $patch, $retainKeys, $setElementOrder and $deleteFromPrimitiveList. k8s.io/apimachinery/pkg/util/strategicpatch does the
// same, and would add 2.5 MB to a program.
package strategic

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/anykind/anykind/schema"
)

const (
	directive       = "$patch"
	retainKeys      = "$retainKeys"
	elementOrder    = "$setElementOrder/"
	deletePrimitive = "$deleteFromPrimitiveList/"
)

// Apply merges a patch into an object of a kind. It changes both and returns the object.
func Apply(object, patch map[string]any, kind *schema.Schema) (map[string]any, error) {
	switch value := patch[directive]; value {
	case nil:
	case "replace":
		delete(patch, directive)
		return patch, nil
	case "delete":
		return map[string]any{}, nil
	default:
		return nil, fmt.Errorf("unknown patch type: %v in map: %v", value, patch)
	}
	if object == nil {
		object = map[string]any{}
	}
	if err := retain(object, patch); err != nil {
		return nil, err
	}
	if err := applyOrders(object, patch, kind); err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(patch)) {
		if err := applyField(object, key, patch[key], kind); err != nil {
			return nil, err
		}
	}
	return object, nil
}

// retain removes fields that $retainKeys does not list.
func retain(object, patch map[string]any) error {
	value, found := patch[retainKeys]
	if !found {
		return nil
	}
	delete(patch, retainKeys)
	kept, isList := value.([]any)
	for key, value := range patch {
		isDirective := strings.HasPrefix(key, deletePrimitive) || strings.HasPrefix(key, elementOrder)
		isList = isList && (value == nil || isDirective || slices.Contains(kept, any(key)))
	}
	if !isList {
		return errors.New("invalid patch format of retainKeys")
	}
	maps.DeleteFunc(object, func(key string, _ any) bool { return !slices.Contains(kept, any(key)) })
	return nil
}

func applyField(object map[string]any, key string, value any, kind *schema.Schema) error {
	key, isDeletion := strings.CutPrefix(key, deletePrimitive)
	current, found := object[key]
	if value == nil {
		delete(object, key)
		return nil
	}
	var err error
	switch patch := value.(type) {
	case map[string]any:
		if current, isMap := current.(map[string]any); isMap {
			field := fieldOf(kind, key)
			if strategyOf(field) == "replace" {
				object[key] = patch
				return nil
			}
			object[key], err = Apply(current, patch, field)
			return err
		}
	case []any:
		if current, isList := current.([]any); isList {
			field := fieldOf(kind, key)
			switch {
			case isDeletion:
				object[key] = slices.DeleteFunc(current, func(item any) bool { return contains(patch, item, "") })
			case strategyOf(field) == "merge":
				object[key], err = mergeList(current, patch, field)
			default:
				object[key] = patch
			}
			return err
		}
	}
	if isDeletion {
		return nil
	}
	if !found || !isScalar(value) {
		dropNulls(value)
	}
	kept, keep := withoutDirectives(value)
	if object[key] = kept; !keep {
		delete(object, key)
	}
	return nil
}

func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// fieldOf returns the schema of a field or, in a map, of its values. It returns nil for an unknown field.
func fieldOf(kind *schema.Schema, name string) *schema.Schema {
	if kind == nil {
		return nil
	}
	if field := kind.Field(name); field != nil {
		return field
	}
	values, _ := kind.Values()
	return values
}

// strategyOf returns merge, replace or "", without retainKeys: the strategy is for the author of a patch.
func strategyOf(field *schema.Schema) string {
	if field == nil {
		return ""
	}
	for strategy := range strings.SplitSeq(field.PatchStrategy, ",") {
		if strategy != "retainKeys" {
			return strategy
		}
	}
	return ""
}

// dropNulls removes null fields.
func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		maps.DeleteFunc(value, func(_ string, field any) bool { return field == nil })
		for _, field := range value {
			dropNulls(field)
		}
	case []any:
		for _, item := range value {
			dropNulls(item)
		}
	}
}

// withoutDirectives removes values with a directive. keep is false for such a value itself.
func withoutDirectives(value any) (kept any, keep bool) {
	switch value := value.(type) {
	case map[string]any:
		if _, found := value[directive]; found {
			return nil, false
		}
		for key, field := range value {
			if value[key], keep = withoutDirectives(field); !keep {
				delete(value, key)
			}
		}
	case []any:
		all := []any{}
		for _, item := range value {
			if item, keep := withoutDirectives(item); keep {
				all = append(all, item)
			}
		}
		return all, true
	}
	return value, true
}
