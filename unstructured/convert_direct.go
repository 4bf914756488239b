package unstructured

import (
	stdencoding "encoding"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// plan stores values in a type without JSON, in a third of the time. The result equals the JSON reader's for the output of
// Encode. A plan covers the common types and values. For an unusual or invalid value it gives up: the JSON reader then converts
// the whole object and returns the error.
//
// apimachinery's DefaultUnstructuredConverter is not used: it truncates integers out of range, panics on unexported fields, and
// shares memory with the object.
type plan struct {
	typ        reflect.Type
	kind       reflect.Kind         // Int and Uint for all sizes; Invalid for types left to the JSON reader
	unmarshals bool                 // a json.Unmarshaler or TextUnmarshaler
	elem       *plan                // of a pointer, slice or map
	fields     map[string]fieldPlan // of a struct, by JSON name
}

type fieldPlan struct {
	index []int
	plan  *plan
}

// maxDirectDepth limits the nesting of stored values: an object may contain itself.
const maxDirectDepth = 500

// store sets into to v. into must be zero. store returns false for values left to the JSON reader, and then into may be partly
// set.
func (p *plan) store(v any, into reflect.Value, depth int) bool {
	if p.unmarshals {
		return unmarshal(v, into, depth)
	}
	if isNull(v) {
		return p.kind != reflect.Invalid
	}
	switch p.kind {
	case reflect.Pointer:
		target := reflect.New(p.elem.typ)
		into.Set(target)
		return p.elem.store(v, target.Elem(), depth)
	case reflect.Interface:
		plain, ok := normalizedCopy(v, depth)
		if ok {
			into.Set(reflect.ValueOf(plain))
		}
		return ok
	case reflect.Slice:
		return p.storeSlice(v, into, depth+1)
	case reflect.Map:
		return p.storeMap(v, into, depth+1)
	case reflect.Struct:
		return p.storeStruct(v, into, depth+1)
	default:
		return p.storeScalar(v, into)
	}
}

func isNull(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return v == nil
	case []any:
		return v == nil
	}
	return false
}

func (p *plan) storeScalar(v any, into reflect.Value) bool {
	switch v := v.(type) {
	case string:
		if p.kind == reflect.String {
			into.SetString(validText(v))
			return true
		}
	case bool:
		if p.kind == reflect.Bool {
			into.SetBool(v)
			return true
		}
	case int64:
		switch {
		case p.kind == reflect.Int && !into.OverflowInt(v):
			into.SetInt(v)
			return true
		case p.kind == reflect.Uint && v >= 0 && !into.OverflowUint(uint64(v)):
			into.SetUint(uint64(v))
			return true
		case p.kind == reflect.Float64:
			into.SetFloat(float64(v))
			return true
		}
	case float64:
		if p.kind == reflect.Float64 {
			into.SetFloat(v)
			return v-v == 0 // neither NaN nor infinite
		}
	}
	return false
}

func (p *plan) storeStruct(v any, into reflect.Value, depth int) bool {
	m, ok := v.(map[string]any)
	if !ok || depth > maxDirectDepth {
		return false
	}
	for name, v := range m {
		if f, found := p.fields[name]; found && !f.plan.store(v, into.FieldByIndex(f.index), depth) {
			return false
		}
	}
	return true
}

func (p *plan) storeMap(v any, into reflect.Value, depth int) bool {
	m, ok := v.(map[string]any)
	if !ok || depth > maxDirectDepth {
		return false
	}
	made := reflect.MakeMapWithSize(p.typ, len(m))
	into.Set(made)
	for name, v := range m {
		element := reflect.New(p.elem.typ).Elem()
		if !utf8.ValidString(name) || !p.elem.store(v, element, depth) {
			return false
		}
		made.SetMapIndex(reflect.ValueOf(name).Convert(p.typ.Key()), element)
	}
	return true
}

func (p *plan) storeSlice(v any, into reflect.Value, depth int) bool {
	isBytes := p.elem.typ.Kind() == reflect.Uint8
	if text, isString := v.(string); isString && isBytes {
		data, err := base64.StdEncoding.DecodeString(text)
		into.SetBytes(data)
		return err == nil
	}
	list, ok := v.([]any)
	if !ok || isBytes || depth > maxDirectDepth {
		return false
	}
	made := reflect.MakeSlice(p.typ, len(list), len(list))
	into.Set(made)
	for i, v := range list {
		if !p.elem.store(v, made.Index(i), depth) {
			return false
		}
	}
	return true
}

func unmarshal(v any, into reflect.Value, depth int) bool {
	switch target := into.Addr().Interface().(type) {
	case json.Unmarshaler:
		data, err := encodeValue(v, depth)
		return err == nil && target.UnmarshalJSON(data) == nil
	case stdencoding.TextUnmarshaler:
		s, ok := v.(string)
		return v == nil || ok && target.UnmarshalText([]byte(validText(s))) == nil
	default:
		return false
	}
}

// normalizedCopy copies v for a target of type any. The result equals Decode's for the JSON of v.
func normalizedCopy(v any, depth int) (any, bool) {
	if depth++; depth > maxDirectDepth {
		return nil, false
	}
	if isNull(v) {
		return nil, true
	}
	var ok bool
	switch v := v.(type) {
	case bool, int64:
		return v, true
	case string:
		return validText(v), true
	case float64:
		return v, v != float64(int64(v)) && v-v == 0 // 1.0 becomes 1
	case map[string]any:
		m := make(map[string]any, len(v))
		for name, member := range v {
			if m[name], ok = normalizedCopy(member, depth); !ok || !utf8.ValidString(name) {
				return nil, false
			}
		}
		return m, true
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			if list[i], ok = normalizedCopy(element, depth); !ok {
				return nil, false
			}
		}
		return list, true
	default:
		return nil, false
	}
}

var plans sync.Map // from reflect.Type to *plan

func planOf(t reflect.Type) *plan {
	known, found := plans.Load(t)
	if !found {
		known, _ = plans.LoadOrStore(t, newPlan(t, map[reflect.Type]*plan{}))
	}
	p, _ := known.(*plan)
	return p
}

// newPlan returns the plan of a type. known also has unfinished plans, since types may contain themselves.
func newPlan(t reflect.Type, known map[reflect.Type]*plan) *plan {
	if p := known[t]; p != nil {
		return p
	}
	p := &plan{typ: t}
	known[t] = p
	switch {
	case isUnmarshaler(reflect.PointerTo(t)):
		p.unmarshals = t.Name() != "" && t.Kind() != reflect.Interface
		return p
	case t == reflect.TypeFor[Lazy](), t == reflect.TypeFor[json.Number]():
		return p
	}
	switch kind := t.Kind(); kind {
	case reflect.String, reflect.Bool, reflect.Float64:
		p.kind = kind
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.kind = reflect.Int
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.kind = reflect.Uint
	case reflect.Interface:
		if t.NumMethod() == 0 {
			p.kind = kind
		}
	case reflect.Pointer:
		p.kind = kind
		p.elem = newPlan(t.Elem(), known)
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 || t == reflect.TypeFor[[]byte]() {
			p.kind = kind
			p.elem = newPlan(t.Elem(), known)
		}
	case reflect.Map:
		if t.Key().Kind() == reflect.String && !isUnmarshaler(reflect.PointerTo(t.Key())) {
			p.kind = kind
			p.elem = newPlan(t.Elem(), known)
		}
	case reflect.Struct:
		p.fields = map[string]fieldPlan{}
		if addFields(p.fields, t, nil, known) {
			p.kind = kind
		}
	default:
	}
	return p
}

func isUnmarshaler(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.Unmarshaler]()) || t.Implements(reflect.TypeFor[stdencoding.TextUnmarshaler]())
}

// addFields adds the fields of a struct and of its embedded structs. The struct's own fields hide embedded fields. It returns
// false where encoding/json has finer rules.
func addFields(fields map[string]fieldPlan, t reflect.Type, index []int, known map[reflect.Type]*plan) bool {
	own := map[string]fieldPlan{}
	embedded := map[string]fieldPlan{}
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		at := append(index[:len(index):len(index)], i)
		switch {
		case tag == "-" || !f.IsExported() && !f.Anonymous:
			continue
		case strings.ContainsFunc(name, func(c rune) bool { return c != '-' && c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) }):
			return false
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			if !addFields(embedded, f.Type, at, known) {
				return false
			}
			continue
		case f.Anonymous && (name == "" || !f.IsExported()):
			return false
		case name == "":
			name = f.Name
		}
		p := newPlan(f.Type, known)
		if _, isDuplicate := own[name]; isDuplicate || strings.Contains(options, "string") {
			p = &plan{typ: f.Type}
		}
		own[name] = fieldPlan{at, p}
	}
	for name, f := range embedded {
		if _, hidden := own[name]; !hidden {
			own[name] = f
		}
	}
	for name, f := range own {
		if _, isDuplicate := fields[name]; isDuplicate {
			f.plan = &plan{typ: f.plan.typ}
		}
		fields[name] = f
	}
	return true
}
