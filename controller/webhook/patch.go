package webhook

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// operation is an operation of a JSON patch, https://www.rfc-editor.org/rfc/rfc6902.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitzero"`
}

var escapePath = strings.NewReplacer("~", "~0", "/", "~1")

// difference appends the operations that turn before into after, in the order of paths.
func difference(operations []operation, path string, before, after any) []operation {
	if reflect.DeepEqual(before, after) {
		return operations
	}
	oldMap, wasMap := before.(map[string]any)
	newMap, isMap := after.(map[string]any)
	if wasMap && isMap {
		keys := maps.Clone(oldMap)
		maps.Copy(keys, newMap)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			member := path + "/" + escapePath.Replace(key)
			oldValue, had := oldMap[key]
			newValue, has := newMap[key]
			switch {
			case !has:
				operations = append(operations, operation{Op: "remove", Path: member})
			case !had:
				operations = append(operations, added(member, newValue))
			default:
				operations = difference(operations, member, oldValue, newValue)
			}
		}
		return operations
	}
	oldList, wasList := before.([]any)
	newList, isList := after.([]any)
	if wasList && isList {
		return listDifference(operations, path, oldList, newList)
	}
	return append(operations, operation{Op: "replace", Path: path, Value: orNull(after)})
}

// listDifference keeps the common start and end of both lists.
func listDifference(operations []operation, path string, before, after []any) []operation {
	start := 0
	for start < min(len(before), len(after)) && reflect.DeepEqual(before[start], after[start]) {
		start++
	}
	end := 0
	for end < min(len(before), len(after))-start && reflect.DeepEqual(before[len(before)-1-end], after[len(after)-1-end]) {
		end++
	}
	oldMiddle := before[start : len(before)-end]
	newMiddle := after[start : len(after)-end]
	common := min(len(oldMiddle), len(newMiddle))
	element := func(i int) string { return path + "/" + strconv.Itoa(start+i) }
	for i := range common {
		operations = difference(operations, element(i), oldMiddle[i], newMiddle[i])
	}
	for range len(oldMiddle) - common {
		operations = append(operations, operation{Op: "remove", Path: element(common)})
	}
	for i := common; i < len(newMiddle); i++ {
		operations = append(operations, added(element(i), newMiddle[i]))
	}
	return operations
}

func added(path string, value any) operation {
	return operation{Op: "add", Path: path, Value: orNull(value)}
}

// null is a JSON null in place of a nil Value, which is omitted.
type null struct{}

func (null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

func orNull(value any) any {
	if value == nil {
		return null{}
	}
	return value
}

// merge applies the changes from before to after to sent. before is sent as a struct writes it: without unknown fields, and with
// empty fields that sent does not have.
func merge(sent, before, after any) any {
	if reflect.DeepEqual(before, after) {
		return sent
	}
	beforeMap, wasMap := before.(map[string]any)
	afterMap, isMap := after.(map[string]any)
	if wasMap && isMap {
		sentMap, _ := sent.(map[string]any)
		merged := maps.Clone(sentMap)
		if merged == nil {
			merged = map[string]any{}
		}
		for key, value := range afterMap {
			if old, had := beforeMap[key]; !had || !reflect.DeepEqual(old, value) {
				merged[key] = merge(sentMap[key], old, value)
			}
		}
		for key := range beforeMap {
			if _, has := afterMap[key]; !has {
				delete(merged, key)
			}
		}
		return merged
	}
	beforeList, wasList := before.([]any)
	afterList, isList := after.([]any)
	sentList, _ := sent.([]any)
	if !wasList || !isList || len(sentList) != len(beforeList) {
		return after
	}
	merged := make([]any, len(afterList))
	for i, old := range formerIndexes(beforeList, afterList) {
		merged[i] = afterList[i]
		if old >= 0 {
			merged[i] = merge(sentList[old], beforeList[old], afterList[i])
		}
	}
	return merged
}

// formerIndexes returns the index of the former state of each element of after, or -1. Each index occurs once: several elements may have
// the same name, or equal known fields.
func formerIndexes(before, after []any) []int {
	indexes := make([]int, len(after))
	isUsed := make([]bool, len(before))
	for i := range indexes {
		indexes[i] = -1
	}
	assign := func(isSame func(i, old int) bool) {
		for i := range after {
			for old := 0; old < len(before) && indexes[i] < 0; old++ {
				if !isUsed[old] && isSame(i, old) {
					indexes[i] = old
					isUsed[old] = true
				}
			}
		}
	}
	isEqual := func(i, old int) bool { return reflect.DeepEqual(before[old], after[i]) }
	assign(func(i, old int) bool { return i == old && isEqual(i, old) })
	assign(isEqual)
	isNamesake := func(i, old int) bool { return nameOf(after[i]) != nil && nameOf(after[i]) == nameOf(before[old]) }
	assign(func(i, old int) bool { return i == old && isNamesake(i, old) })
	assign(isNamesake)
	if len(before) == len(after) {
		assign(func(i, old int) bool { return i == old && nameOf(after[i]) == nil })
	}
	return indexes
}

// nameOf returns the field name of a list element, or nil.
func nameOf(element any) any {
	if object, ok := element.(map[string]any); ok {
		if name, isText := object["name"].(string); isText {
			return name
		}
	}
	return nil
}
