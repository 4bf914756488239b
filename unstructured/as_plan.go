package unstructured

import (
	stdencoding "encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"unicode"
)

// A plan is how to store values in a type without JSON.
type plan struct {
	typ    reflect.Type
	sort   planSort
	elem   *plan                // of a pointer, list or mapping
	fields map[string]fieldPlan // of a structure, by their names in JSON
}

type fieldPlan struct {
	index []int
	plan  *plan
}

type planSort int

const (
	planUnknown planSort = iota // left to the JSON reader
	planItself                  // unmarshals itself
	planText
	planBoolean
	planSigned
	planUnsigned
	planDouble
	planBase64
	planPointer
	planList
	planMapping
	planStructure
	planAnything
)

var plans sync.Map // from reflect.Type to *plan

func planOf(t reflect.Type) *plan {
	if known, ok := plans.Load(t); ok {
		if p, ok := known.(*plan); ok {
			return p
		}
	}
	p := newPlan(t, map[reflect.Type]*plan{})
	plans.Store(t, p)
	return p
}

// newPlan makes a plan; those that are being made are in known, since types may hold themselves.
func newPlan(t reflect.Type, known map[reflect.Type]*plan) *plan {
	if p := known[t]; p != nil {
		return p
	}
	p := &plan{typ: t}
	known[t] = p
	if unmarshals(reflect.PointerTo(t)) {
		if t.Name() != "" && t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
			p.sort = planItself
		}
		return p
	}
	switch t.Kind() {
	case reflect.String:
		p.sort = planText
	case reflect.Bool:
		p.sort = planBoolean
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.sort = planSigned
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.sort = planUnsigned
	case reflect.Float64:
		p.sort = planDouble
	case reflect.Pointer:
		p.sort, p.elem = planPointer, newPlan(t.Elem(), known)
	case reflect.Slice:
		switch {
		case t == reflect.TypeFor[[]byte]():
			p.sort = planBase64
		case t.Elem().Kind() != reflect.Uint8:
			p.sort, p.elem = planList, newPlan(t.Elem(), known)
		}
	case reflect.Map:
		if t.Key().Kind() == reflect.String && !unmarshals(reflect.PointerTo(t.Key())) {
			p.sort, p.elem = planMapping, newPlan(t.Elem(), known)
		}
	case reflect.Struct:
		p.sort, p.fields = planStructure, map[string]fieldPlan{}
		if !addFields(p.fields, t, nil, known) {
			p.sort = planUnknown
		}
	case reflect.Interface:
		if t == reflect.TypeFor[any]() {
			p.sort = planAnything
		}
	default:
	}
	return p
}

func unmarshals(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.Unmarshaler]()) || t.Implements(reflect.TypeFor[stdencoding.TextUnmarshaler]())
}

// addFields adds the fields of a struct and of those embedded in it, which have less right to a name. Where
// encoding/json has finer rules, it gives up.
func addFields(fields map[string]fieldPlan, t reflect.Type, index []int, known map[reflect.Type]*plan) bool {
	own, embedded := map[string]fieldPlan{}, map[string]fieldPlan{}
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
		if _, isTwice := own[name]; isTwice || strings.Contains(options, "string") {
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
		if _, isTwice := fields[name]; isTwice {
			f.plan = &plan{typ: f.plan.typ}
		}
		fields[name] = f
	}
	return true
}
