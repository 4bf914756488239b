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

// Decode does what decoding an object into its Go type and encoding it again does: fields that the type lacks are dropped and
// their paths returned, such as "spec.x"; nulls and empty values are dropped where the type says so; times and quantities get
// their canonical form. A value of a wrong type is an error with encoding/json's text. A kind without a recorded type is
// returned as it is. obj is not changed.
func Decode(kind schema.GroupVersionKind, obj map[string]any) (decoded map[string]any, unknown []string, err error) {
	table := goTypes()
	typ, ok := table.kinds[kind]
	if !ok {
		return obj, nil, nil
	}
	d := &decoder{table: table}
	value := d.value(typ, obj, place{})
	if d.err != nil {
		return nil, nil, d.err
	}
	decoded, _ = value.(map[string]any)
	return decoded, d.unknown, nil
}

// decoder passes a value through a Go type. It keeps the first error and goes on, as encoding/json does.
type decoder struct {
	table   *typeTable
	unknown []string
	err     error
}

// place is where a value stands: its path, the names of the fields above it, and the struct that has it.
type place struct {
	path, fields, owner string
}

func (p place) field(owner string, field *goField) place {
	return place{joinPath(p.path, field.name), joinPath(p.fields, field.path), owner}
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// mismatch notes that a value of kind found cannot be decoded into the type.
func (d *decoder) mismatch(found, typ string, at place) {
	if at.owner == "" {
		d.fail(fmt.Errorf("json: cannot unmarshal %s into Go value of type %s", found, typeName(typ)))
		return
	}
	d.fail(fmt.Errorf("json: cannot unmarshal %s into Go struct field %s.%s of type %s", found, at.owner, at.fields, typeName(typ)))
}

// jsonKind returns how encoding/json names a value in errors.
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

// value returns what encoding the type gives after decoding value into it; nil for a nil pointer, map or slice.
func (d *decoder) value(typ string, value any, at place) any {
	switch {
	case strings.HasPrefix(typ, "*"):
		if value == nil {
			return nil
		}
		return d.value(typ[1:], value, at)
	case value == nil:
		return d.zero(typ)
	case typ == "[]uint8":
		return d.base64(value, at)
	case strings.HasPrefix(typ, "[]"):
		return d.slice(typ, typ[2:], value, at)
	case strings.HasPrefix(typ, "map["):
		return d.mapping(typ, value, at)
	}
	named, ok := d.table.types[typ]
	switch {
	case !ok:
		return d.scalar(typ, typ, value, at)
	case named.underlying == "struct":
		return d.structure(named, value, at)
	case named.underlying == "custom":
		return d.custom(named, value, at)
	case strings.HasPrefix(named.underlying, "[]"):
		return d.slice(typ, named.underlying[2:], value, at)
	case strings.HasPrefix(named.underlying, "map["):
		return d.mapping(named.underlying, value, at)
	}
	return d.scalar(named.underlying, typ, value, at)
}

func (d *decoder) slice(typ, element string, value any, at place) any {
	items, ok := value.([]any)
	if !ok {
		d.mismatch(jsonKind(value), typ, at)
		return nil
	}
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = d.value(element, item, place{at.path + "[" + strconv.Itoa(i) + "]", at.fields, at.owner})
	}
	return out
}

func (d *decoder) mapping(typ string, value any, at place) any {
	fields, ok := value.(map[string]any)
	if !ok {
		d.mismatch(jsonKind(value), typ, at)
		return nil
	}
	_, element, _ := strings.Cut(typ[4:], "]")
	out := make(map[string]any, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		out[name] = d.value(element, fields[name], place{joinPath(at.path, name), at.fields, at.owner})
	}
	return out
}

func (d *decoder) structure(t *goType, value any, at place) any {
	fields, ok := value.(map[string]any)
	if !ok {
		d.mismatch(jsonKind(value), t.path, at)
		return d.zero(t.path)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if t.byName[name] == nil {
			d.unknown = append(d.unknown, joinPath(at.path, name))
		}
	}
	owner := t.name[strings.LastIndexByte(t.name, '.')+1:]
	out := make(map[string]any, len(fields))
	for i := range t.fields {
		field := &t.fields[i]
		given, found := fields[field.name]
		var encoded any
		if found && given != nil {
			encoded = d.value(field.typ, given, at.field(owner, field))
		} else {
			encoded = d.zero(field.typ)
		}
		if !d.omitted(field, encoded) {
			out[field.name] = encoded
		}
	}
	return out
}

// omitted reports whether encoding leaves out a field of the encoded value.
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

// isStruct reports whether the type is a struct, which omitempty never leaves out.
func (d *decoder) isStruct(typ string) bool {
	named, ok := d.table.types[typ]
	return ok && (named.underlying == "struct" || named.underlying == "custom")
}

// zero returns what encoding the zero value of the type gives.
func (d *decoder) zero(typ string) any {
	if strings.HasPrefix(typ, "*") || strings.HasPrefix(typ, "[]") || strings.HasPrefix(typ, "map[") {
		return nil
	}
	underlying := typ
	if named, ok := d.table.types[typ]; ok {
		switch named.underlying {
		case "struct":
			return d.structure(named, map[string]any{}, place{})
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

func (d *decoder) scalar(underlying, typ string, value any, at place) any {
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
		return d.integer(underlying, typ, value, at)
	}
	d.mismatch(jsonKind(value), typ, at)
	return d.zero(underlying)
}

func (d *decoder) integer(underlying, typ string, value any, at place) any {
	limits := map[string][2]int64{
		"int32": {math.MinInt32, math.MaxInt32}, "uint8": {0, math.MaxUint8}, "uint16": {0, math.MaxUint16}, "uint32": {0, math.MaxUint32},
	}
	limit, limited := limits[underlying]
	switch v := value.(type) {
	case int64:
		if !limited || v >= limit[0] && v <= limit[1] {
			return v
		}
		d.mismatch("number "+strconv.FormatInt(v, 10), typ, at)
	case float64:
		d.mismatch("number "+strconv.FormatFloat(v, 'g', -1, 64), typ, at)
	default:
		d.mismatch(jsonKind(value), typ, at)
	}
	return int64(0)
}
