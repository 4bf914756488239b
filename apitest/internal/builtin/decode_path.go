package builtin

import (
	"strconv"
	"strings"
)

// step leads from a value to one inside it: to a field of the struct owner, to a map's entry, or to an item of a slice. Paths are
// made of them only when there is something to report.
type step struct {
	owner   string
	field   *goField
	name    string
	index   int
	indexed bool
}

// inside decodes a value that a step leads to.
func (d *decoder) inside(s step, typ string, value any) any {
	d.path = append(d.path, s)
	decoded := d.value(typ, value)
	d.path = d.path[:len(d.path)-1]
	return decoded
}

// pathTo returns the path to a field of the value that is being decoded, such as "spec.containers[0].image".
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

// location returns the struct that has the value that is being decoded, and the fields that lead to it, as errors have them.
func (d *decoder) location() (owner, fields string) {
	var names []string
	for _, s := range d.path {
		if s.field != nil {
			owner, names = s.owner, append(names, s.field.path)
		}
	}
	return owner, strings.Join(names, ".")
}
