package builtin

import (
	"strconv"
	"strings"
)

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
