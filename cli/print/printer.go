package print

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/unstructured"
)

// Object writes a single object. Several calls write several documents.
func (p *Printer) Object(obj *unstructured.Object) error {
	object, keep, err := p.filter.apply(obj.Object)
	if err != nil || !keep {
		return err
	}
	return p.write(object)
}

func (p *Printer) write(object map[string]any) error {
	if err := p.format.object(p.w, object); err != nil {
		return err
	}
	return printable.Flush(p.w)
}

// List writes objects as a list of kind List. It writes each object before it reads the next.
func (p *Printer) List(objects iter.Seq[*unstructured.Object]) error {
	var failed error
	kept := func(yield func(map[string]any) bool) {
		for obj := range objects {
			object, keep, err := p.filter.apply(obj.Object)
			if err != nil {
				failed = err
				return
			}
			if keep && !yield(object) {
				return
			}
		}
	}
	if p.sortBy != "" {
		sorted, err := sortObjects(kept, p.sortBy)
		if err != nil {
			return err
		}
		kept = sorted
	}
	if err := p.format.list(p.w, kept); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	return printable.Flush(p.w)
}

// Changed writes a changed object. In the default format it is a line with the operation, such as "deployment.apps/web created".
func (p *Printer) Changed(obj *unstructured.Object, operation string) error {
	if !p.isLine {
		return p.Object(obj)
	}
	_, err := fmt.Fprintln(p.w, printable.LineFor(p.w, Name(obj)), operation)
	return err
}

// Event writes a watch event, as kubectl get --output-watch-events does: with managedFields.
func (p *Printer) Event(eventType string, obj *unstructured.Object) error {
	filter := *p.filter
	filter.hideManagedFields = false
	object, keep, err := filter.apply(obj.Object)
	if err != nil || !keep {
		return err
	}
	if _, ok := p.format.(nameFormat); ok {
		return p.write(object)
	}
	event := map[string]any{"type": eventType, "object": object}
	if format, ok := p.format.(*jsonFormat); ok {
		return format.line(p.w, event)
	}
	return p.write(event)
}

// Name returns the object's kind, group and name as kubectl prints them: deployment.apps/web.
func Name(obj *unstructured.Object) string { return nameOf(obj.Object) }

func nameOf(object map[string]any) string {
	name := cmp.Or(nested.String(object, "metadata", "name"), "<unknown>")
	kind := strings.ToLower(nested.String(object, "kind"))
	if group, _, found := strings.Cut(nested.String(object, "apiVersion"), "/"); found {
		kind += "." + group
	}
	return kind + "/" + name
}

// Terminal returns w, or a sanitizing writer to w if w is a terminal: control characters except tab and line break become U+FFFD.
// Use the writer for errors and warnings of a server. It is safe for concurrent use.
func Terminal(w io.Writer) io.Writer { return printable.Writer(w) }

type nameFormat struct{}

func (nameFormat) object(w io.Writer, object map[string]any) error {
	_, err := io.WriteString(w, printable.LineFor(w, nameOf(object))+"\n")
	return err
}

func (f nameFormat) list(w io.Writer, objects func(yield func(map[string]any) bool)) error {
	for object := range objects {
		if err := f.object(w, object); err != nil {
			return err
		}
	}
	return nil
}

// wholeList returns all objects as a List, the data of templates.
func wholeList(objects func(yield func(map[string]any) bool)) map[string]any {
	items := []any{}
	for object := range objects {
		items = append(items, object)
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "List", "items": items,
		"metadata": map[string]any{"resourceVersion": ""},
	}
}
