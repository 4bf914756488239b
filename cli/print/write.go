package print

import (
	"io"
	"iter"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// Object writes a single object.
func (f *Flags) Object(w io.Writer, obj *unstructured.Object) error {
	printer, err := f.Printer(w)
	if err != nil {
		return err
	}
	return printer.Object(obj)
}

// Objects writes the objects of an iterator such as dynamic.Handle.List as a list of kind List. If the iterator fails, Objects
// ends the list and returns the error.
func (f *Flags) Objects(w io.Writer, objects iter.Seq2[*unstructured.Object, error]) error {
	printer, err := f.Printer(w)
	if err != nil {
		return err
	}
	var failed error
	err = printer.List(func(yield func(*unstructured.Object) bool) {
		for obj, err := range objects {
			if err != nil {
				failed = err
				return
			}
			if !yield(obj) {
				return
			}
		}
	})
	if failed != nil {
		return failed
	}
	return err
}

// Rows writes the rows of a resource (see dynamic.Handle.Tables) as a table. SortBy sorts them.
func (f *Flags) Rows(w io.Writer, opts *TableOptions, rows iter.Seq2[*dynamic.TableRow, error]) error {
	table, err := f.Table(w, opts)
	if err != nil {
		return err
	}
	var sorted []*dynamic.TableRow
	for row, err := range rows {
		if err != nil {
			return err
		}
		if f.SortBy != "" {
			sorted = append(sorted, row)
		} else if err := table.Row(row); err != nil {
			return err
		}
	}
	if f.SortBy != "" {
		if err := f.SortRows(sorted); err != nil {
			return err
		}
	}
	for _, row := range sorted {
		if err := table.Row(row); err != nil {
			return err
		}
	}
	return table.Flush()
}
