package print

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// TableOptions configures a Table in addition to the flags.
type TableOptions struct {
	// Kind is written before names with WithKind or --show-kind: deployment.apps/web.
	Kind     schema.GroupKind
	WithKind bool
	// WithNamespace adds the namespace as the first column.
	WithNamespace bool
	// WithContext adds the context of SetContext as the first column.
	WithContext bool
	// WithEvents adds the type of the watch event as the first column.
	WithEvents bool
	// WithSeparator writes an empty line before the first row and its header.
	WithSeparator bool
}

// Table writes rows of server-side tables as kubectl get does. It is not safe for concurrent use.
type Table struct {
	opts    TableOptions
	flags   *Flags
	filter  *filter
	columns *columnWriter
	// definitions are the columns of the latest header.
	definitions []metav1.TableColumnDefinition
	rows        int
	cells       []string
	context     string
}

// Include returns the part of objects needed in rows by the flags, and by a column of namespaces.
func (f *Flags) Include(withNamespace bool) metav1.IncludeObjectPolicy {
	switch {
	case f.SortBy != "" || f.Where != "":
		return metav1.IncludeObject
	case withNamespace || f.ShowLabels || len(f.LabelColumns) > 0:
		return metav1.IncludeMetadata
	}
	return metav1.IncludeNone
}

// Table returns a writer of rows to w. Rows need the objects of Include. On a terminal and with colors, control characters in
// cells are replaced.
func (f *Flags) Table(w io.Writer, opts *TableOptions) (*Table, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	if !f.IsTable() {
		return nil, fmt.Errorf("print %s: the format is not a table", f.Output)
	}
	filter, err := f.newFilter("table")
	if err != nil {
		return nil, err
	}
	t := &Table{flags: f, filter: filter, columns: newColumnWriter(w, f.palette(w))}
	if opts != nil {
		t.opts = *opts
	}
	return t, nil
}

// Rows returns the number of rows, written or held.
func (t *Table) Rows() int { return t.rows }

// SetContext sets the context of the next rows. It needs TableOptions.WithContext.
func (t *Table) SetContext(name string) { t.context = name }

// Row writes a row. A header precedes the first row and each row with new columns.
func (t *Table) Row(row *dynamic.TableRow) error { return t.event("", row) }

// Event writes the row of a watch event. It needs TableOptions.WithEvents.
func (t *Table) Event(eventType string, row *dynamic.TableRow) error { return t.event(eventType, row) }

func (t *Table) event(eventType string, row *dynamic.TableRow) error {
	if t.filter.where != nil {
		if row.Object == nil {
			return errors.New("--where: the row has no object (request the objects of Flags.Include)")
		}
		if _, keep, err := t.filter.apply(row.Object.Object); err != nil || !keep {
			return err
		}
	}
	if t.rows == 0 || len(row.Columns) > 0 && !sameColumns(t.definitions, row.Columns) {
		if t.rows == 0 && t.opts.WithSeparator {
			if err := t.columns.row(nil, true); err != nil {
				return err
			}
		}
		t.definitions = row.Columns
		if err := t.header(); err != nil {
			return err
		}
	}
	t.rows++
	t.cells = t.cells[:0]
	if t.opts.WithContext {
		t.cells = append(t.cells, t.context)
	}
	if t.opts.WithEvents {
		t.cells = append(t.cells, eventCell(eventType))
	}
	if t.opts.WithNamespace {
		t.cells = append(t.cells, namespaceOf(row.Object))
	}
	t.serverCells(row)
	t.labelCells(row.Object)
	return t.columns.row(t.cells, false)
}

func sameColumns(a, b []metav1.TableColumnDefinition) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

func (t *Table) header() error {
	if t.flags.NoHeaders {
		return nil
	}
	var cells []string
	if t.opts.WithContext {
		cells = append(cells, "CONTEXT")
	}
	if t.opts.WithEvents {
		cells = append(cells, "EVENT")
	}
	if t.opts.WithNamespace {
		cells = append(cells, "NAMESPACE")
	}
	for i := range t.definitions {
		if t.isShown(i) {
			cells = append(cells, strings.ToUpper(t.definitions[i].Name))
		}
	}
	for _, label := range t.flags.LabelColumns {
		cells = append(cells, strings.ToUpper(label[strings.LastIndexByte(label, '/')+1:]))
	}
	if t.flags.ShowLabels {
		cells = append(cells, "LABELS")
	}
	return t.columns.row(cells, true)
}

func (t *Table) isShown(column int) bool {
	return t.definitions[column].Priority == 0 || t.flags.Output == "wide"
}

func (t *Table) serverCells(row *dynamic.TableRow) {
	named := !t.opts.WithKind && !t.flags.ShowKind || t.opts.Kind.Empty()
	for i, cell := range row.Cells {
		if i >= len(t.definitions) {
			break
		}
		if !t.isShown(i) {
			if t.definitions[i].Format == "name" {
				named = true
			}
			continue
		}
		text := cellText(cell)
		if !named && t.definitions[i].Format == "name" && t.definitions[i].Type == "string" {
			text = strings.ToLower(t.opts.Kind.String()) + "/" + text
			named = true
		}
		t.cells = append(t.cells, text)
	}
}

func (t *Table) labelCells(obj *unstructured.Object) {
	if len(t.flags.LabelColumns) == 0 && !t.flags.ShowLabels {
		return
	}
	var values map[string]string
	if obj != nil {
		values = obj.GetLabels()
	}
	for _, name := range t.flags.LabelColumns {
		t.cells = append(t.cells, values[name])
	}
	if t.flags.ShowLabels {
		t.cells = append(t.cells, labels.FormatLabels(values))
	}
}

func namespaceOf(obj *unstructured.Object) string {
	if obj == nil {
		return ""
	}
	return obj.GetNamespace()
}

// eventCell pads ADDED, DELETED and ERROR, as kubectl does.
func eventCell(eventType string) string {
	switch eventType {
	case "ADDED", "DELETED", "ERROR":
		return (eventType + "        ")[:len("MODIFIED")]
	}
	return eventType
}

// cellText formats a cell as kubectl does: the first line, followed by "..." if more lines follow.
func cellText(cell any) string {
	switch cell := cell.(type) {
	case nil:
		return ""
	case string:
		if end := strings.IndexAny(cell, "\f\n\r"); end >= 0 {
			cell = cell[:end] + "..."
		}
		return escapeTerminal(cell)
	default:
		return escapeTerminal(fmt.Sprint(cell))
	}
}

// Flush writes the held rows. Later rows keep the column widths.
func (t *Table) Flush() error { return t.columns.flush() }
