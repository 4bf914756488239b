// Package table describes the Protobuf messages of the built-in kinds as text, by reflection over their Go types: the field numbers
// of their protobuf tags, and the names and omissions of their JSON tags. Package internal/protobuf explains the text.
package table

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// marshaler is implemented by types with a Protobuf form.
type marshaler interface{ Marshal() ([]byte, error) }

// forms are the letters of types with a JSON form of their own.
var forms = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():                                "T",
	reflect.TypeFor[metav1.MicroTime]():                           "U",
	reflect.TypeFor[metav1.Duration]():                            "D",
	reflect.TypeFor[resource.Quantity]():                          "Q",
	reflect.TypeFor[intstr.IntOrString]():                         "I",
	reflect.TypeFor[runtime.RawExtension]():                       "R",
	reflect.TypeFor[metav1.FieldsV1]():                            "R",
	reflect.TypeFor[apiextensions.JSON]():                         "R",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrBool]():        "O",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrArray]():       "A",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrStringArray](): "S",
}

// Scheme returns a scheme of the built-in kinds.
func Scheme() (*runtime.Scheme, error) {
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme, metav1.AddMetaToScheme,
	} {
		if err := add(all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Kinds returns the Go types of the kinds in the table: all kinds of built-in groups with a Protobuf form but lists and options.
func Kinds() (map[schema.GroupVersionKind]reflect.Type, error) {
	all, err := Scheme()
	if err != nil {
		return nil, err
	}
	kinds := map[schema.GroupVersionKind]reflect.Type{}
	meta := reflect.TypeFor[metav1.Status]().PkgPath()
	for gvk, t := range all.AllKnownTypes() {
		isPartial := gvk.Group == metav1.GroupName && gvk.Kind == "PartialObjectMetadata"
		isStatus := gvk == schema.GroupVersionKind{Version: "v1", Kind: "Status"}
		switch {
		case gvk.Version == runtime.APIVersionInternal || strings.HasSuffix(gvk.Kind, "List") || strings.HasSuffix(gvk.Kind, "Options"):
		case !reflect.PointerTo(t).Implements(reflect.TypeFor[marshaler]()):
		case t.PkgPath() == meta && !isPartial && !isStatus:
		default:
			kinds[gvk] = t
		}
	}
	return kinds, nil
}

// Text returns the table.
func Text() ([]byte, error) {
	kinds, err := Kinds()
	if err != nil {
		return nil, err
	}
	d := &describer{messages: map[reflect.Type]*message{}}
	for _, t := range kinds {
		d.describe(t)
	}
	d.describe(reflect.TypeFor[metav1.ListMeta]())
	ordered := slices.SortedFunc(maps.Values(d.messages), func(a, b *message) int { return cmp.Compare(a.name, b.name) })
	for i, m := range ordered {
		m.index = i
	}
	var out bytes.Buffer
	for _, gvk := range slices.SortedFunc(maps.Keys(kinds), compareKinds) {
		apiVersion, kind := gvk.ToAPIVersionAndKind()
		fmt.Fprintf(&out, "=%s %s %d\n", apiVersion, kind, d.messages[kinds[gvk]].index)
	}
	for _, m := range ordered {
		fmt.Fprintln(&out, m.name)
		for _, f := range m.fields {
			fmt.Fprintf(&out, "\t%s %s %s\n", f.number, f.name, d.expression(f))
		}
	}
	return out.Bytes(), d.err
}

func compareKinds(a, b schema.GroupVersionKind) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Kind, b.Kind))
}

type message struct {
	name   string
	index  int
	fields []field
}

type field struct {
	number, name string
	goType       reflect.Type
	omission     string
}

// describer collects the messages of types. err is the first type that the table cannot describe.
type describer struct {
	messages map[reflect.Type]*message
	err      error
}

func (d *describer) failed(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// describe adds the message of a struct and of its fields' types.
func (d *describer) describe(t reflect.Type) {
	if d.messages[t] != nil {
		return
	}
	m := &message{name: messageName(t)}
	d.messages[t] = m
	for i := range t.NumField() {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("protobuf"), ",")
		if len(tag) < 2 {
			if f.Type != reflect.TypeFor[metav1.TypeMeta]() {
				d.failed("%s.%s has no Protobuf form", t, f.Name)
			}
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = "."
		}
		if number, err := strconv.Atoi(tag[1]); err != nil || number > 63 {
			d.failed("%s.%s has number %s", t, f.Name, tag[1])
		}
		m.fields = append(m.fields, field{tag[1], name, f.Type, d.omission(f, options)})
		d.describeWithin(f.Type)
	}
}

// describeWithin describes the structs in a field's type.
func (d *describer) describeWithin(t reflect.Type) {
	switch {
	case t == reflect.TypeFor[apiextensions.JSONSchemaPropsOrBool](), t == reflect.TypeFor[apiextensions.JSONSchemaPropsOrArray](),
		t == reflect.TypeFor[apiextensions.JSONSchemaPropsOrStringArray]():
		d.describe(reflect.TypeFor[apiextensions.JSONSchemaProps]())
	case forms[t] != "":
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) && t.Kind() != reflect.Pointer:
		d.failed("%s has an unknown form in JSON", t)
	case t.Kind() == reflect.Struct:
		d.describe(t)
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice, t.Kind() == reflect.Map:
		d.describeWithin(t.Elem())
	}
}

// omission returns the letter of a field's JSON form if the field is absent or zero.
func (d *describer) omission(f reflect.StructField, options string) string {
	omitEmpty := slices.Contains(strings.Split(options, ","), "omitempty")
	omitZero := slices.Contains(strings.Split(options, ","), "omitzero")
	isTime := f.Type == reflect.TypeFor[metav1.Time]()
	if omitZero && !isTime {
		d.failed("%s has omitzero", f.Name)
	}
	switch f.Type.Kind() {
	case reflect.Struct:
		if omitZero {
			return "z"
		}
		return "d"
	case reflect.Pointer, reflect.Slice, reflect.Map:
		switch {
		case !omitEmpty:
			return "n"
		case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Uint8:
			return "z"
		case f.Type.Kind() == reflect.Slice && isMarshaler(f.Type):
			d.failed("%s has omitempty", f.Name)
		}
		return "o"
	default:
		if omitEmpty {
			return "z"
		}
		return "d"
	}
}

func isMarshaler(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[marshaler]())
}

func (d *describer) expression(f field) string { return f.omission + d.form(f.goType) }

// form returns the letters of a type.
func (d *describer) form(t reflect.Type) string {
	switch letter := forms[t]; letter {
	case "":
	case "O", "A", "S":
		return fmt.Sprintf("%s%d", letter, d.messages[reflect.TypeFor[apiextensions.JSONSchemaProps]()].index)
	default:
		return letter
	}
	switch t.Kind() {
	case reflect.String:
		return "s"
	case reflect.Bool:
		return "b"
	case reflect.Int32:
		return "i"
	case reflect.Int64:
		return "l"
	case reflect.Float64:
		return "f"
	case reflect.Pointer:
		return d.form(t.Elem())
	case reflect.Slice:
		switch {
		case t.Elem().Kind() == reflect.Uint8:
			return "y"
		case isMarshaler(t):
			return "*" + d.form(t.Elem())
		}
		return "[" + d.form(t.Elem())
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			d.failed("%s has a key of a different type", t)
		}
		return "{" + d.form(t.Elem())
	case reflect.Struct:
		return fmt.Sprintf("m%d%s", d.messages[t].index, d.typeOf(t))
	default:
		d.failed("%s has no form", t)
		return ""
	}
}

// typeOf returns the apiVersion and kind that the API server adds to objects within an object: the claims of StatefulSets.
func (d *describer) typeOf(t reflect.Type) string {
	if f, found := t.FieldByName("TypeMeta"); !found || !f.Anonymous || t.PkgPath() == reflect.TypeFor[metav1.Status]().PkgPath() {
		return "" // a Status or DeleteOptions within an object has no kind
	}
	gvks, _, err := scheme.Scheme.ObjectKinds(reflect.New(t).Interface().(runtime.Object))
	if err != nil || len(gvks) != 1 || gvks[0].Kind != "PersistentVolumeClaim" {
		d.failed("%s is within an object and has a kind", t)
		return ""
	}
	apiVersion, kind := gvks[0].ToAPIVersionAndKind()
	return "," + apiVersion + "," + kind
}

func messageName(t reflect.Type) string {
	path := strings.TrimPrefix(t.PkgPath(), "k8s.io/")
	for _, prefix := range []string{"apimachinery/pkg/apis/", "apimachinery/pkg/", "apiextensions-apiserver/pkg/apis/", "kube-aggregator/pkg/apis/", "api/"} {
		path = strings.TrimPrefix(path, prefix)
	}
	return path + "." + t.Name()
}
