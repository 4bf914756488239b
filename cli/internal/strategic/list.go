package strategic

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/anykind/anykind/schema"
)

// applyOrders merges the lists that have a $setElementOrder, and removes both from the patch.
func applyOrders(object, patch map[string]any, kind *schema.Schema) error {
	for key, value := range patch {
		name, isOrder := strings.CutPrefix(key, elementOrder)
		if !isOrder {
			continue
		}
		delete(patch, key)
		order, isList := value.([]any)
		current, hasCurrent, currentErr := listField(object, name)
		changes, hasChanges, changesErr := listField(patch, name)
		if err := errors.Join(currentErr, changesErr); err != nil || !isList {
			return cmp.Or(err, errors.New("invalid patch format of setElementOrder list"))
		}
		delete(patch, name)
		field := fieldOf(kind, name)
		mergeKey := mergeKeyOf(field)
		if err := checkOrder(changes, order, mergeKey); err != nil {
			return err
		}
		merged := current
		switch {
		case !hasCurrent && !hasChanges:
			continue
		case !hasCurrent:
			kept, _ := withoutDirectives(changes)
			merged, _ = kept.([]any)
		case hasChanges && strategyOf(field) != "merge":
			merged = changes
		case hasChanges:
			var err error
			if merged, err = mergeList(slices.Clone(current), changes, field); err != nil {
				return err
			}
		}
		if len(current)+len(changes) == 0 {
			return errors.New("no elements in any of the given slices")
		}
		object[name] = arrange(merged, order, current, mergeKey)
	}
	return nil
}

func listField(fields map[string]any, name string) (list []any, found bool, err error) {
	value, found := fields[name]
	if list, isList := value.([]any); isList || !found {
		return list, found, nil
	}
	return nil, true, fmt.Errorf("expected a list in %s, but received a %T", name, value)
}

// checkOrder returns an error if the elements of a patch are not in the order of $setElementOrder.
func checkOrder(patch, order []any, key string) error {
	if len(order) == 0 {
		return nil
	}
	at := 0
	for _, item := range patch {
		if fields, isMap := item.(map[string]any); isMap && fields[directive] != nil {
			continue
		}
		next := index(order[at:], item, key)
		if next < 0 {
			return fmt.Errorf("The order in patch list:\n%v\n doesn't match $setElementOrder list:\n%v\n", patch, order)
		}
		at += next + 1
	}
	return nil
}

func mergeKeyOf(field *schema.Schema) string {
	if field == nil {
		return ""
	}
	return field.PatchMergeKey
}

// mergeList merges a list by its merge key, or a list of scalars.
func mergeList(current, patch []any, field *schema.Schema) ([]any, error) {
	if !slices.ContainsFunc(slices.Concat(current, patch), func(item any) bool { return !isScalar(item) }) {
		merged := slices.Clone(current)
		for _, item := range patch {
			if !slices.Contains(merged, item) {
				merged = append(merged, item)
			}
		}
		return arrange(merged, patch, current, ""), nil
	}
	key := mergeKeyOf(field)
	if key == "" {
		return nil, errors.New("cannot merge lists without merge key")
	}
	return mergeObjects(current, patch, field)
}

// arrange returns the elements of order first, in this order. Further elements keep their places in live, as far as possible.
func arrange(merged, order, live []any, key string) []any {
	ordered := []any{}
	var rest []any
	for _, item := range merged {
		if contains(order, item, key) {
			ordered = append(ordered, item)
		} else {
			rest = append(rest, item)
		}
	}
	slices.SortStableFunc(ordered, func(a, b any) int { return index(order, a, key) - index(order, b, key) })
	return interleave(rest, ordered, live, key)
}

// mergeObjects merges the elements of a list by their merge key.
func mergeObjects(current, patch []any, field *schema.Schema) ([]any, error) {
	key := field.PatchMergeKey
	var changes []map[string]any
	replaces := false
	for _, item := range patch {
		change, isMap := item.(map[string]any)
		if !isMap {
			return nil, fmt.Errorf("expected a map, but received a %T", item)
		}
		value, found := change[directive]
		switch {
		case !found:
			changes = append(changes, change)
		case value == "replace":
			replaces = true
		case value != "delete":
			return nil, fmt.Errorf("unknown patch type: %v in map: %v", value, change)
		case change[key] == nil:
			return nil, noMergeKey(change, key)
		default:
			current = slices.DeleteFunc(current, func(item any) bool { return keyOf(item, key) == change[key] })
		}
	}
	order := make([]any, len(changes))
	for i, change := range changes {
		order[i] = change
	}
	if replaces {
		return order, nil
	}
	live := slices.Clone(current)
	for _, change := range changes {
		if change[key] == nil {
			return nil, noMergeKey(change, key)
		}
		at := index(current, change, key)
		if at < 0 {
			current = append(current, change)
			continue
		}
		before, _ := current[at].(map[string]any)
		after, err := Apply(before, change, field.Items())
		if err != nil {
			return nil, err
		}
		current[at] = after
	}
	return arrange(current, order, live, key), nil
}

func noMergeKey(element map[string]any, key string) error {
	return fmt.Errorf("map: %v does not contain declared merge key: %s", element, key)
}

// keyOf returns the identity of an element: the value of its merge key, or the scalar itself.
func keyOf(item any, key string) any {
	if fields, isMap := item.(map[string]any); isMap {
		item = fields[key]
	}
	if !isScalar(item) {
		return fmt.Sprint(item) // not comparable
	}
	return item
}

func index(list []any, item any, key string) int {
	return slices.IndexFunc(list, func(one any) bool { return keyOf(one, key) == keyOf(item, key) })
}

func contains(list []any, item any, key string) bool { return index(list, item, key) >= 0 }

// interleave merges rest into ordered: an element of rest comes before the first element of ordered that followed it in live.
func interleave(rest, ordered, live []any, key string) []any {
	all := make([]any, 0, len(rest)+len(ordered))
	for len(rest) > 0 && len(ordered) > 0 {
		at := index(live, rest[0], key)
		next := index(live, ordered[0], key)
		if at >= 0 && next >= 0 && at < next {
			all = append(all, rest[0])
			rest = rest[1:]
			continue
		}
		all = append(all, ordered[0])
		ordered = ordered[1:]
	}
	return append(append(all, ordered...), rest...)
}
