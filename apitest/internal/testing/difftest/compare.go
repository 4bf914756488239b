package difftest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// difference has the differing lines of two servers' responses to an operation.
type difference struct {
	op    Operation
	lines []string
}

// compare returns the differences between two runs of the same operations.
func compare(operations []Operation, a, b transcript) []difference {
	first, firstOrder := normalizeAll(operations, a)
	second, secondOrder := normalizeAll(operations, b)
	var all []difference
	for i, op := range operations {
		if lines := compareResponses(first[i], second[i]); len(lines) > 0 {
			all = append(all, difference{op: op, lines: lines})
		}
	}
	if len(all) > 0 {
		return all
	}
	for i := range firstOrder { // equal responses have equal labels
		if i >= len(secondOrder) || firstOrder[i] != secondOrder[i] {
			line := fmt.Sprintf("order of resourceVersions: %s", firstOrder[i])
			return append(all, difference{op: Operation{Class: "all", Verb: "order"}, lines: []string{line}})
		}
	}
	return all
}

func compareResponses(a, b normalResponse) []string {
	var lines []string
	if a.Status != b.Status {
		lines = append(lines, fmt.Sprintf("status: %d | %d", a.Status, b.Status))
	}
	if a.ContentType != b.ContentType {
		lines = append(lines, fmt.Sprintf("content type: %s | %s", a.ContentType, b.ContentType))
	}
	lines = appendDifferences(lines, "warnings", toAny(a.Warnings), toAny(b.Warnings))
	lines = appendDifferences(lines, "body", a.Body, b.Body)
	return appendDifferences(lines, "events", toAny(a.Events), toAny(b.Events))
}

func toAny(values []any) any {
	if values == nil {
		return []any{}
	}
	return values
}

// appendDifferences appends a line for each difference between two JSON values.
func appendDifferences(lines []string, path string, a, b any) []string {
	if reflect.DeepEqual(a, b) {
		return lines
	}
	x, isMap := a.(map[string]any)
	y, isMapToo := b.(map[string]any)
	if isMap && isMapToo {
		keys := maps.Clone(x)
		maps.Copy(keys, y)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			left, inLeft := x[key]
			right, inRight := y[key]
			switch {
			case !inLeft:
				lines = append(lines, fmt.Sprintf("%s.%s: absent | %s", path, key, short(right)))
			case !inRight:
				lines = append(lines, fmt.Sprintf("%s.%s: %s | absent", path, key, short(left)))
			default:
				lines = appendDifferences(lines, path+"."+key, left, right)
			}
		}
		return lines
	}
	v, isList := a.([]any)
	w, isListToo := b.([]any)
	if isList && isListToo && len(v) == len(w) {
		for i := range v {
			lines = appendDifferences(lines, fmt.Sprintf("%s[%d]", path, i), v[i], w[i])
		}
		return lines
	}
	return append(lines, fmt.Sprintf("%s: %s | %s", path, short(a), short(b)))
}

func short(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	readable := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(text))
	if len(readable) > 600 {
		readable = readable[:600] + "…"
	}
	return readable
}
