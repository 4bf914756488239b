package builtin

import (
	"bufio"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/recorded"
)

// goTypes has the recorded Go types of the built-in kinds. They are parsed at first use and shared by all servers.
var goTypes = sync.OnceValue(parseTypes)

type typeTable struct {
	kinds map[schema.GroupVersionKind]string
	types map[string]*goType
}

// goType is a named Go type.
type goType struct {
	name       string    // with its package, as in errors: "v1.PodSpec"
	path       string    // "api/core/v1.PodSpec"
	underlying string    // "struct", "custom" (own UnmarshalJSON) or an expression
	fields     []goField // sorted like encoded maps, so that the first error equals the server's
	byName     map[string]*goField
	declared   []declaredRule
}

// goField is a field of a struct by its JSON name. typ is an expression, such as "[]api/core/v1.Container".
type goField struct {
	name                string
	path                string // in errors, with the names of embedded structs
	omitEmpty, omitZero bool
	typ                 string
	omitted             bool // not encoded if the object lacks it
	declared            []declaredRule
}

func parseTypes() *typeTable {
	table := &typeTable{kinds: map[schema.GroupVersionKind]string{}, types: map[string]*goType{}}
	reader, err := recorded.ReadTypes()
	if err != nil {
		return table
	}
	var current *goType
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		line := lines.Text()
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "\t\t"):
			current.declare(strings.TrimSpace(line))
		case len(words) == 4 && words[0] == "=":
			gv, _ := schema.ParseGroupVersion(strings.TrimPrefix(words[1], "core/"))
			table.kinds[gv.WithKind(words[2])] = words[3]
		case len(words) == 4 && line[0] == '\t':
			field := goField{
				name: words[0], path: words[3], typ: words[2],
				omitEmpty: strings.Contains(words[1], "e"), omitZero: strings.Contains(words[1], "z"),
			}
			current.fields = append(current.fields, field)
		case len(words) == 2:
			current = &goType{name: shortName(words[0]), path: words[0], underlying: words[1]}
			table.types[words[0]] = current
		}
	}
	for _, t := range table.types {
		slices.SortFunc(t.fields, func(a, b goField) int { return strings.Compare(a.name, b.name) })
		t.byName = make(map[string]*goField, len(t.fields))
		for i := range t.fields {
			t.byName[t.fields[i].name] = &t.fields[i]
		}
	}
	d := &decoder{table: table}
	for _, t := range table.types {
		for i := range t.fields {
			t.fields[i].omitted = d.omitted(&t.fields[i], d.zero(t.fields[i].typ))
		}
	}
	return table
}

// shortName returns a type's name with the last element of its package path.
func shortName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// typeName returns an expression in the form of encoding/json's errors: "[]v1.Container".
func typeName(expression string) string {
	prefix := ""
	for {
		switch {
		case strings.HasPrefix(expression, "[]"):
			prefix = prefix + "[]"
			expression = expression[2:]
		case strings.HasPrefix(expression, "*"):
			prefix = prefix + "*"
			expression = expression[1:]
		case strings.HasPrefix(expression, "map["):
			key, element, _ := strings.Cut(expression[4:], "]")
			return fmt.Sprintf("%smap[%s]%s", prefix, shortName(key), typeName(element))
		default:
			return prefix + shortName(expression)
		}
	}
}

// Known reports whether the Go type of a kind is recorded.
func Known(kind schema.GroupVersionKind) bool {
	_, ok := goTypes().kinds[kind]
	return ok
}

// elementOf returns the type inside pointers, lists and maps.
func (t *typeTable) elementOf(typ string) string {
	for {
		switch {
		case strings.HasPrefix(typ, "*"):
			typ = typ[1:]
		case strings.HasPrefix(typ, "[]"):
			typ = typ[2:]
		case strings.HasPrefix(typ, "map["):
			_, typ, _ = strings.Cut(typ[4:], "]")
		case t.types[typ] != nil && (strings.HasPrefix(t.types[typ].underlying, "[]") || strings.HasPrefix(t.types[typ].underlying, "map[")):
			typ = t.types[typ].underlying
		default:
			return typ
		}
	}
}
