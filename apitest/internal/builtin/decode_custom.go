package builtin

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// custom decodes and re-encodes a value of a type with its own UnmarshalJSON.
func (d *decoder) custom(t *goType, value any) any {
	if strings.HasPrefix(t.path, "apiextensions/v1.JSONSchemaPropsOr") {
		return d.schemaOr(strings.TrimPrefix(t.path, "apiextensions/v1.JSONSchemaPropsOr"), value)
	}
	path := d.path
	d.path = nil // errors of UnmarshalJSON have no path
	defer func() { d.path = path }()
	switch t.path {
	case "apis/meta/v1.Time":
		return d.time(value, time.RFC3339, time.RFC3339)
	case "apis/meta/v1.MicroTime":
		return d.time(value, metav1.RFC3339Micro, metav1.RFC3339Micro)
	case "apis/meta/v1.Duration":
		return d.duration(value)
	case "api/resource.Quantity":
		return d.quantity(value)
	case "util/intstr.IntOrString":
		return d.intOrString(value)
	}
	return value // raw JSON
}

// schemaOr decodes a JSON schema or a value of another kind: "Array", "Bool" or "StringArray".
func (d *decoder) schemaOr(other string, value any) any {
	const schema = "apiextensions/v1.JSONSchemaProps"
	switch value := value.(type) {
	case map[string]any:
		return d.value(schema, value)
	case bool:
		if other == "Bool" {
			return value
		}
	case []any:
		switch other {
		case "Array":
			return d.value("[]"+schema, value)
		case "StringArray":
			return d.value("[]string", value)
		}
	}
	if other == "Bool" {
		d.fail(errors.New("boolean or JSON schema expected"))
	}
	return nil // ignored
}

func zeroOfCustom(path string) any {
	switch path {
	case "apis/meta/v1.Duration":
		return "0s"
	case "api/resource.Quantity":
		return "0"
	case "util/intstr.IntOrString":
		return int64(0)
	}
	return nil
}

// text returns a value's string. A value of another type adds an error without a path.
func (d *decoder) text(value any) (string, bool) {
	s, ok := value.(string)
	if !ok {
		d.mismatch(jsonKind(value), "string")
	}
	return s, ok
}

func (d *decoder) time(value any, parse, format string) any {
	s, ok := d.text(value)
	if !ok {
		return nil
	}
	t, err := time.Parse(parse, s)
	if err != nil {
		d.fail(err)
		return nil
	}
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(format)
}

func (d *decoder) duration(value any) any {
	s, ok := d.text(value)
	if !ok {
		return nil
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		d.fail(err)
		return nil
	}
	return parsed.String()
}

func (d *decoder) quantity(value any) any {
	content, err := json.Marshal(value)
	if err != nil {
		d.fail(err)
		return nil
	}
	var q resource.Quantity
	if err := q.UnmarshalJSON(content); err != nil {
		d.fail(err)
		return nil
	}
	return q.String()
}

func (d *decoder) intOrString(value any) any {
	if s, ok := value.(string); ok {
		return s
	}
	return d.integer("int32", "int32", value)
}

func (d *decoder) base64(value any) any {
	s, ok := value.(string)
	if !ok {
		d.mismatch(jsonKind(value), "[]uint8")
		return nil
	}
	content, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		d.fail(err)
		return nil
	}
	return base64.StdEncoding.EncodeToString(content)
}

// step is an element of a path: a field of the struct owner, a map key, or a slice index. Paths are only formatted for errors and
// unknown fields.
type step struct {
	owner   string
	field   *goField
	name    string
	index   int
	indexed bool
}

// inside decodes value with s appended to the path.
func (d *decoder) inside(s step, typ string, value any) any {
	d.path = append(d.path, s)
	decoded := d.value(typ, value)
	d.path = d.path[:len(d.path)-1]
	return decoded
}

// pathTo returns the path to a field of the current value, such as "spec.containers[0].image".
func (d *decoder) pathTo(name string) string {
	var b strings.Builder
	for _, s := range append(d.path, step{name: name}) {
		switch {
		case s.indexed:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
			continue
		case b.Len() > 0:
			b.WriteByte('.')
		}
		b.WriteString(s.name)
	}
	return b.String()
}

// location returns the struct of the current value and its field path, as shown in errors.
func (d *decoder) location() (owner, fields string) {
	var names []string
	for _, s := range d.path {
		if s.field != nil {
			owner = s.owner
			names = append(names, s.field.path)
		}
	}
	return owner, strings.Join(names, ".")
}
