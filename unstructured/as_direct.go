package unstructured

import (
	stdencoding "encoding"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"unicode/utf8"
)

// direct stores v, of an Object, in into as the JSON reader would store what Encode writes of it, without the JSON.
// It knows what objects are mostly made of. Where something is unusual or wrong it gives up, with into half done: the
// JSON reader then does all of it, and finds the words for what is wrong.
//
// apimachinery's DefaultUnstructuredConverter is not used: it cuts off integers that do not fit, panics on
// fields that are not exported, and shares memory with the object.
func (p *plan) direct(v any, into reflect.Value, depth int) bool {
	if p.sort == planItself {
		return unmarshal(v, into, depth)
	}
	switch v := v.(type) {
	case nil:
		return p.sort != planUnknown // into is fresh
	case string:
		if p.text(v, into) {
			return true
		}
	case bool:
		if p.sort == planBoolean {
			into.SetBool(v)
			return true
		}
	case int64:
		if p.number(v, into) {
			return true
		}
	case float64:
		if p.sort == planDouble {
			into.SetFloat(v)
			return v-v == 0 // neither NaN nor infinite
		}
	case map[string]any:
		if v == nil {
			return p.direct(nil, into, depth)
		}
		if p.sort == planStructure || p.sort == planMapping {
			return p.members(v, into, depth)
		}
	case []any:
		if v == nil {
			return p.direct(nil, into, depth)
		}
		if p.sort == planList {
			return p.elements(v, into, depth)
		}
	}
	switch p.sort {
	case planPointer:
		target := reflect.New(p.elem.typ)
		into.Set(target)
		return p.elem.direct(v, target.Elem(), depth)
	case planAnything:
		plain, ok := settledCopy(v, depth)
		if ok && plain != nil {
			into.Set(reflect.ValueOf(plain))
		}
		return ok
	default:
		return false
	}
}

func (p *plan) text(s string, into reflect.Value) bool {
	switch p.sort {
	case planText:
		into.SetString(validText(s))
	case planBase64:
		data, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return false
		}
		into.SetBytes(data)
	default:
		return false
	}
	return true
}

func (p *plan) number(n int64, into reflect.Value) bool {
	switch {
	case p.sort == planSigned && !into.OverflowInt(n):
		into.SetInt(n)
	case p.sort == planUnsigned && n >= 0 && !into.OverflowUint(uint64(n)):
		into.SetUint(uint64(n))
	case p.sort == planDouble:
		into.SetFloat(float64(n))
	default:
		return false
	}
	return true
}

// directDepth is how deep direct goes; an object may hold itself.
const directDepth = 500

func (p *plan) members(m map[string]any, into reflect.Value, depth int) bool {
	if depth++; depth > directDepth {
		return false
	}
	if p.sort == planStructure {
		for name, v := range m {
			if f, found := p.fields[name]; found && !f.plan.direct(v, into.FieldByIndex(f.index), depth) {
				return false
			}
		}
		return true
	}
	made := reflect.MakeMapWithSize(p.typ, len(m))
	into.Set(made)
	for name, v := range m {
		element := reflect.New(p.elem.typ).Elem()
		if !utf8.ValidString(name) || !p.elem.direct(v, element, depth) {
			return false
		}
		made.SetMapIndex(reflect.ValueOf(name).Convert(p.typ.Key()), element)
	}
	return true
}

func (p *plan) elements(l []any, into reflect.Value, depth int) bool {
	if depth++; depth > directDepth {
		return false
	}
	made := reflect.MakeSlice(p.typ, len(l), len(l))
	into.Set(made)
	for i, v := range l {
		if !p.elem.direct(v, made.Index(i), depth) {
			return false
		}
	}
	return true
}

// unmarshal lets into read v itself.
func unmarshal(v any, into reflect.Value, depth int) bool {
	switch target := into.Addr().Interface().(type) {
	case json.Unmarshaler:
		data, ok := jsonText(v, depth)
		return ok && target.UnmarshalJSON(data) == nil
	case stdencoding.TextUnmarshaler:
		s, ok := v.(string)
		return v == nil || ok && target.UnmarshalText([]byte(validText(s))) == nil
	default:
		return false
	}
}

// jsonText is v as JSON.
func jsonText(v any, depth int) ([]byte, bool) {
	if v == nil {
		return []byte("null"), true
	}
	data, err := encodeValue(v, depth)
	return data, err == nil
}

// settledCopy copies v, for an any, as it is when it has been JSON.
func settledCopy(v any, depth int) (any, bool) {
	if depth++; depth > directDepth {
		return nil, false
	}
	switch v := v.(type) {
	case nil, bool, int64:
		return v, true
	case string:
		return validText(v), true
	case float64:
		return v, v != float64(int64(v)) && v-v == 0 // 1.0 becomes 1
	case map[string]any:
		if v == nil {
			return nil, true // JSON's null
		}
		m := make(map[string]any, len(v))
		for name, member := range v {
			plain, ok := settledCopy(member, depth)
			if !ok || !utf8.ValidString(name) {
				return nil, false
			}
			m[name] = plain
		}
		return m, true
	case []any:
		if v == nil {
			return nil, true
		}
		l := make([]any, len(v))
		for i, element := range v {
			var ok bool
			if l[i], ok = settledCopy(element, depth); !ok {
				return nil, false
			}
		}
		return l, true
	default:
		return nil, false
	}
}
