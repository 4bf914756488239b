package probe

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

const maxDepthBelowSeed = 7

// A fault is a change of a field. A nil value removes the field.
type fault struct {
	path  []any // field names and indexes
	value any
}

// String returns the fault as "spec.ports[0].port = 0".
func (f fault) String() string { return fmt.Sprintf("%s = %.60q", f.field(), fmt.Sprint(f.value)) }

// field returns the path as in a warning.
func (f fault) field() string { return pathText(f.path) }

func pathText(path []any) string {
	var text strings.Builder
	for _, part := range path {
		switch part := part.(type) {
		case int:
			text.WriteString("[" + strconv.Itoa(part) + "]")
		case string:
			if text.Len() > 0 {
				text.WriteByte('.')
			}
			text.WriteString(part)
		}
	}
	return text.String()
}

// drawer collects the faults of an object.
type drawer struct {
	schemas *schemas
	// add returns the function for the faults of a field, nil if the write ignores the field.
	add func(path []any) func(fault)
}

// object adds faults for the fields of a schema. value is the object's value, or nil. around has the names of the
// enclosing definitions. They are not repeated.
func (d *drawer) object(of *openapi, path []any, value map[string]any, around []string, below int) {
	for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
		d.field(of.Properties[name], append(slices.Clone(path), name), value[name], around, below)
	}
}

// field adds faults for a field and the fields below it.
func (d *drawer) field(of *openapi, path []any, value any, around []string, below int) {
	of = d.schemas.resolve(of)
	if add := d.add(path); add != nil {
		for _, faulty := range d.values(of, value) {
			add(fault{path: path, value: faulty})
		}
		if value != nil {
			add(fault{path: path})
		}
	}
	if value == nil {
		below++
	}
	if of.name != "" && slices.Contains(around, of.name) || below > maxDepthBelowSeed || strings.HasSuffix(of.name, "JSONSchemaProps") && below > 0 {
		return
	}
	if of.name != "" {
		around = append(slices.Clone(around), of.name)
	}
	switch {
	case len(of.Properties) > 0:
		fields, _ := value.(map[string]any)
		d.object(of, path, fields, around, below)
	case of.Type == "array" && of.Items != nil && len(d.schemas.resolve(of.Items).Properties) > 0:
		items, _ := value.([]any)
		for i := range min(max(len(items), 1), 3) {
			var item map[string]any
			if i < len(items) {
				item, _ = items[i].(map[string]any)
			}
			d.object(d.schemas.resolve(of.Items), append(slices.Clone(path), i), item, around, below)
		}
	case of.AdditionalProperties != nil && len(d.schemas.resolve(of.AdditionalProperties).Properties) > 0:
		d.object(d.schemas.resolve(of.AdditionalProperties), append(slices.Clone(path), "a"), nil, around, below+1)
	}
}

// values returns faulty, unusual and plausible values of a field.
func (d *drawer) values(of *openapi, value any) (values []any) {
	long := strings.Repeat("x", 300)
	switch {
	case of.Type == "array":
		one := d.schemas.plausible(of.Items)
		item := d.schemas.resolve(of.Items)
		values = append(values, []any{}, []any{one}, []any{one, one}, "wrong")
		if items, _ := value.([]any); len(items) > 0 {
			values = append(values, append(slices.Clone(items), items[0]), append(slices.Clone(items), one))
		}
		if item.Type == "string" {
			for _, text := range texts(item, long) {
				values = append(values, []any{text})
			}
		}
		if item.Type == "integer" {
			values = append(values, []any{int64(-1)})
		}
	case of.Type == "integer" || of.Type == "number":
		for _, n := range []int64{-1, 0, 1, 2, 5, 1000, 70000, 2147483647} {
			values = append(values, n)
		}
		values = append(values, "wrong")
	case of.Type == "boolean":
		values = append(values, true, false, "wrong")
	case strings.HasSuffix(of.name, "IntOrString"):
		values = append(values, int64(-1), int64(0), int64(5), int64(70000), "x", "Bad Value", "-5%", "0%", "10%", "200%", "1x", "")
	case strings.HasSuffix(of.name, "Quantity"):
		values = append(values, "-1", "0", "1", "1500m", "1Gi", "wrong")
	case of.AdditionalProperties != nil:
		element := d.schemas.resolve(of.AdditionalProperties)
		one := d.schemas.plausible(of.AdditionalProperties)
		values = append(values, map[string]any{}, map[string]any{"a": one}, map[string]any{"bad key!": one}, map[string]any{"a/b/c": one}, map[string]any{long: one})
		if strings.HasSuffix(element.name, "Quantity") {
			for _, name := range []string{"cpu", "memory", "storage", "example.com/gpu", "hugepages-2Mi", "pods", "wrong"} {
				values = append(values, map[string]any{name: "1"}, map[string]any{name: "-1"}, map[string]any{name: "1500m"})
			}
		} else if element.Type == "string" {
			values = append(values, map[string]any{"a": "Bad Value!"}, map[string]any{"a": long})
		}
	case len(of.Properties) > 0:
		values = append(values, map[string]any{}, d.schemas.plausible(of), "wrong")
	case of.Type == "string":
		for _, text := range texts(of, long) {
			values = append(values, text)
		}
		values = append(values, int64(5))
	default:
		values = append(values, map[string]any{}, "a")
	}
	return slices.DeleteFunc(values, func(v any) bool { return reflect.DeepEqual(v, value) })
}

// texts returns values of a string.
func texts(of *openapi, long string) []string {
	if of.Format == "date-time" {
		return []string{"2026-01-01T00:00:00Z", "2030-01-01T00:00:00.000000Z", "yesterday"}
	}
	if of.Format == "byte" {
		return []string{"", "YQ==", "%%%"}
	}
	all := []string{"", "Bad Value!", long, "a", "UPPER", "-a", "a.b", "a/b", "../x", "/a", "a//b", "%d", "1.2.3.4", "10.0.0.0/8", "0", "example.com/a", "*", "https://example.com"}
	for _, value := range of.Enum {
		if text, ok := value.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

// apply returns a copy of an object with the fault, and false if it changes nothing. Missing objects and lists around the field
// are added with their required fields.
func (f fault) apply(s *schemas, of *openapi, object map[string]any) (map[string]any, bool) {
	changed := runtime.DeepCopyJSON(object)
	result := s.set(of, changed, f.path, f.value)
	out, _ := result.(map[string]any)
	return out, out != nil && !reflect.DeepEqual(out, object)
}

func (s *schemas) set(of *openapi, current any, path []any, value any) any {
	if len(path) == 0 {
		return runtime.DeepCopyJSONValue(value)
	}
	of = s.resolve(of)
	switch part := path[0].(type) {
	case int:
		items, _ := current.([]any)
		if part >= len(items) {
			items = append(items, s.plausible(of.Items))
			part = len(items) - 1
		}
		items[part] = s.set(of.Items, items[part], path[1:], value)
		return items
	case string:
		fields, _ := current.(map[string]any)
		if fields == nil {
			fields, _ = s.plausible(of).(map[string]any)
		}
		if fields == nil {
			fields = map[string]any{}
		}
		below := of.Properties[part]
		if below == nil {
			below = of.AdditionalProperties
		}
		if set := s.set(below, fields[part], path[1:], value); set == nil {
			delete(fields, part)
		} else {
			fields[part] = set
		}
		return fields
	}
	return current
}
