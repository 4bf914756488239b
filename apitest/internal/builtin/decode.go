package builtin

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Decode has the effect of decoding an object into its Go type and encoding it again. Fields unknown to the type are dropped and
// returned as paths such as "spec.x". Nulls and empty values are dropped according to omitempty and omitzero. Times and
// quantities get their canonical form. A value of a wrong type is an error with encoding/json's text. A kind without a recorded
// type is returned unchanged. obj is not modified.
func Decode(kind schema.GroupVersionKind, obj map[string]any) (decoded map[string]any, unknown []string, err error) {
	decoded, unknown, _, err = DecodeWrite(kind, "", obj)
	return decoded, unknown, err
}

// DecodeWrite is [Decode] of an object to be written. empty has the dropped fields with an empty list or map, also with an error, except
// for fields with complete rules: a server may distinguish them from absent fields. The fields of the status, or of the rest of the
// object, are left out if the write ignores them.
func DecodeWrite(kind schema.GroupVersionKind, subresource string, obj map[string]any) (decoded map[string]any, unknown, empty []string, err error) {
	table := goTypes()
	typ, ok := table.kinds[kind]
	if !ok {
		return obj, nil, nil, nil
	}
	d := &decoder{table: table}
	value := d.value(typ, obj)
	empty = slices.DeleteFunc(d.empty, func(path string) bool {
		return isWithinField(path, "metadata") || isWithinField(path, "status") != (subresource == "status")
	})
	if d.err != nil {
		return nil, nil, empty, d.err
	}
	decoded, _ = value.(map[string]any)
	return decoded, d.unknown, empty, nil
}

// isWithinField reports whether a path is equal to outer or below it.
func isWithinField(path, outer string) bool {
	rest, found := strings.CutPrefix(path, outer)
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// decoder decodes and re-encodes a value by its Go type. It keeps the first error and continues, like encoding/json.
type decoder struct {
	table   *typeTable
	path    []step // to the current value
	unknown []string
	empty   []string // dropped empty lists and maps without complete rules
	err     error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// mismatch adds an error: a value of JSON kind found cannot be decoded into typ.
func (d *decoder) mismatch(found, typ string) {
	owner, fields := d.location()
	if owner == "" {
		d.fail(fmt.Errorf("json: cannot unmarshal %s into Go value of type %s", found, typeName(typ)))
		return
	}
	d.fail(fmt.Errorf("json: cannot unmarshal %s into Go struct field %s.%s of type %s", found, owner, fields, typeName(typ)))
}

// jsonKind returns the name of a value's kind in errors of encoding/json.
func jsonKind(value any) string {
	switch value.(type) {
	case string:
		return "string"
	case bool:
		return "bool"
	case map[string]any:
		return "object"
	case []any:
		return "array"
	}
	return "number"
}

// value decodes value into typ and encodes the result. It returns nil for a nil pointer, map or slice.
func (d *decoder) value(typ string, value any) any {
	switch {
	case strings.HasPrefix(typ, "*"):
		if value == nil {
			return nil
		}
		return d.value(typ[1:], value)
	case value == nil:
		return d.zero(typ)
	case typ == "[]uint8":
		return d.base64(value)
	case strings.HasPrefix(typ, "[]"):
		return d.slice(typ, typ[2:], value)
	case strings.HasPrefix(typ, "map["):
		return d.mapping(typ, value)
	}
	named, ok := d.table.types[typ]
	switch {
	case !ok:
		return d.scalar(typ, typ, value)
	case named.underlying == "struct":
		return d.structure(named, value)
	case named.underlying == "custom":
		return d.custom(named, value)
	case strings.HasPrefix(named.underlying, "[]"):
		return d.slice(typ, named.underlying[2:], value)
	case strings.HasPrefix(named.underlying, "map["):
		return d.mapping(named.underlying, value)
	}
	return d.scalar(named.underlying, typ, value)
}

func (d *decoder) slice(typ, element string, value any) any {
	items, ok := value.([]any)
	if !ok {
		d.mismatch(jsonKind(value), typ)
		return nil
	}
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = d.inside(step{index: i, indexed: true}, element, item)
	}
	return out
}

func (d *decoder) mapping(typ string, value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		d.mismatch(jsonKind(value), typ)
		return nil
	}
	_, element, _ := strings.Cut(typ[4:], "]")
	out := make(map[string]any, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		out[name] = d.inside(step{name: name}, element, fields[name])
	}
	return out
}

func (d *decoder) structure(t *goType, value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		d.mismatch(jsonKind(value), t.path)
		return d.zero(t.path)
	}
	d.reportUnknown(t, fields)
	owner := t.name[strings.LastIndexByte(t.name, '.')+1:]
	out := make(map[string]any, len(fields))
	for i := range t.fields {
		field := &t.fields[i]
		given := fields[field.name]
		if given == nil && field.omitted {
			continue
		}
		var encoded any
		if given != nil {
			encoded = d.inside(step{owner: owner, field: field, name: field.name}, field.typ, given)
		} else {
			encoded = d.zero(field.typ)
		}
		switch {
		case !d.omitted(field, encoded) || field.typ == "apiextensions/v1.JSONSchemaDependencies": // rejected even if it is empty
			out[field.name] = encoded
		case isEmptyCollection(given):
			if rules := complete()[t.path][field.name]; rules == nil || rules.emptyUnchecked {
				d.empty = append(d.empty, d.pathTo(field.name))
			}
		}
	}
	return out
}

func isEmptyCollection(value any) bool {
	switch value := value.(type) {
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	}
	return false
}

// reportUnknown adds the fields unknown to the type, sorted by name.
func (d *decoder) reportUnknown(t *goType, fields map[string]any) {
	known := len(d.unknown)
	for name := range fields {
		if t.byName[name] == nil {
			d.unknown = append(d.unknown, d.pathTo(name))
		}
	}
	slices.Sort(d.unknown[known:])
}

// omitted reports whether omitempty or omitzero drops the encoded value of a field.
func (d *decoder) omitted(field *goField, encoded any) bool {
	if field.omitZero && encoded == nil {
		return true
	}
	if !field.omitEmpty {
		return false
	}
	pointer := strings.HasPrefix(field.typ, "*")
	switch v := encoded.(type) {
	case nil:
		return pointer || !d.isStruct(field.typ)
	case map[string]any:
		return !pointer && len(v) == 0 && !d.isStruct(field.typ)
	case []any:
		return !pointer && len(v) == 0
	case string:
		return !pointer && v == "" && !d.isStruct(field.typ)
	case bool:
		return !pointer && !v
	case int64:
		return !pointer && v == 0 && !d.isStruct(field.typ)
	case float64:
		return !pointer && v == 0
	}
	return false
}

// isStruct reports whether typ is a struct. omitempty never drops a struct.
func (d *decoder) isStruct(typ string) bool {
	named, ok := d.table.types[typ]
	return ok && (named.underlying == "struct" || named.underlying == "custom")
}

// zero returns the encoded zero value of typ.
func (d *decoder) zero(typ string) any {
	if strings.HasPrefix(typ, "*") || strings.HasPrefix(typ, "[]") || strings.HasPrefix(typ, "map[") {
		return nil
	}
	underlying := typ
	if named, ok := d.table.types[typ]; ok {
		switch named.underlying {
		case "struct":
			return d.structure(named, map[string]any{})
		case "custom":
			return zeroOfCustom(named.path)
		}
		underlying = named.underlying
	}
	switch {
	case strings.HasPrefix(underlying, "[]") || strings.HasPrefix(underlying, "map["):
		return nil
	case underlying == "string":
		return ""
	case underlying == "bool":
		return false
	case strings.HasPrefix(underlying, "float"):
		return float64(0)
	}
	return int64(0)
}

func (d *decoder) scalar(underlying, typ string, value any) any {
	switch underlying {
	case "string":
		if s, ok := value.(string); ok {
			return s
		}
	case "bool":
		if b, ok := value.(bool); ok {
			return b
		}
	case "float32", "float64":
		switch v := value.(type) {
		case float64:
			return v
		case int64:
			return float64(v)
		}
	default:
		return d.integer(underlying, typ, value)
	}
	d.mismatch(jsonKind(value), typ)
	return d.zero(underlying)
}

func (d *decoder) integer(underlying, typ string, value any) any {
	low, high := limits(underlying)
	switch v := value.(type) {
	case int64:
		if v >= low && v <= high {
			return v
		}
		d.mismatch("number "+strconv.FormatInt(v, 10), typ)
	case float64:
		d.mismatch("number "+strconv.FormatFloat(v, 'g', -1, 64), typ)
	default:
		d.mismatch(jsonKind(value), typ)
	}
	return int64(0)
}

func limits(integer string) (low, high int64) {
	switch integer {
	case "int32":
		return math.MinInt32, math.MaxInt32
	case "uint8":
		return 0, math.MaxUint8
	case "uint16":
		return 0, math.MaxUint16
	case "uint32":
		return 0, math.MaxUint32
	}
	return math.MinInt64, math.MaxInt64
}
