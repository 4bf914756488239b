package dynamic

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Tables reads objects as the tables that kubectl get prints: the server's columns and rows, for custom resources those
// of additionalPrinterColumns. It is as cheap, immutable and safe for concurrent use as its [Resource].
//
// A cell is a string, bool, int64, float64, nil, or a []any or map[string]any of these. kubectl prints columns with a
// priority above 0 with -o wide only. A row's Object.Object is a *[unstructured.Object], or nil without one. A server
// that returns no table for the resource is an error. See
// https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables.
type Tables struct {
	resource *Resource
}

// Tables returns a reader of tables. include selects the content of each row's object: metav1.IncludeNone,
// metav1.IncludeMetadata (as with [Resource.Metadata]), metav1.IncludeObject, or "" for the server's default, metadata.
func (r *Resource) Tables(include metav1.IncludeObjectPolicy) *Tables {
	return &Tables{r.withRepresentation(representation{kind: tableKind, include: include})}
}

// Get returns the table of one object, which has one row.
func (t *Tables) Get(ctx context.Context, name string, opts *metav1.GetOptions) (*metav1.Table, error) {
	return getAs(ctx, t.resource, name, opts, convertingDecoder[metav1.Table](t.resource.convertTable))
}

// List returns the table of the objects that opts select, with one request. With opts.Limit, pass the table's Continue in
// opts for the next rows.
func (t *Tables) List(ctx context.Context, opts *metav1.ListOptions) (*metav1.Table, error) {
	request, err := t.resource.collectionRequest("list", opts)
	if err != nil {
		return nil, err
	}
	return doAndDecode(ctx, t.resource, request, t.resource.limits().OfPage(), convertingDecoder[metav1.Table](t.resource.convertTable).object)
}

// TableRow is one row of a table.
type TableRow struct {
	// Columns are the table's columns, one for each cell. Rows of one response share them: they are read-only.
	Columns []metav1.TableColumnDefinition
	Cells   []any
	// Conditions mark the row, such as Completed for a pod that has ended.
	Conditions []metav1.TableRowCondition
	// Object is the row's object as include of [Resource.Tables] requires it, nil with metav1.IncludeNone.
	Object *unstructured.Object
}

// Rows yields the rows of the objects that opts select, with their objects, as [Resource.List] yields objects. It holds one
// page, and requests the next one when all of its rows have been taken.
func (t *Tables) Rows(ctx context.Context, opts *metav1.ListOptions) iter.Seq2[*TableRow, error] {
	return func(yield func(*TableRow, error) bool) {
		pages := &listPager[metav1.Table]{resource: t.resource, opts: valueOf(opts)}
		err := pages.run(ctx, func() (more bool, err error) {
			table, err := t.List(ctx, &pages.opts)
			if err != nil {
				return false, err
			}
			for _, row := range table.Rows {
				obj, _ := row.Object.Object.(*unstructured.Object)
				if !yield(&TableRow{table.ColumnDefinitions, row.Cells, row.Conditions, obj}, nil) {
					return false, nil
				}
			}
			return pages.endPage(table.ListMeta), nil
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

// Watch yields changes as tables of one row, and is otherwise like [Resource.Watch]. Each table has the columns, though
// the server sends them once.
func (t *Tables) Watch(ctx context.Context, opts *metav1.ListOptions) iter.Seq2[unstructured.Event[metav1.Table], error] {
	return watchAs(ctx, t.resource, opts, t.watchDecoder)
}

// OpenWatch is to Watch what [Resource.OpenWatch] is to [Resource.Watch].
func (t *Tables) OpenWatch(ctx context.Context, opts *metav1.ListOptions) (*WatchStream[metav1.Table], error) {
	return openWatchAs(ctx, t.resource, opts, t.watchDecoder)
}

// watchDecoder returns a decoder of one watch, which adds the columns of the first table to the others.
func (t *Tables) watchDecoder() decoder[metav1.Table] {
	var columns []metav1.TableColumnDefinition
	return convertingDecoder[metav1.Table](func(obj *unstructured.Lazy) (*metav1.Table, error) {
		table, err := t.resource.convertTable(obj)
		if err != nil {
			return nil, err
		}
		if len(table.ColumnDefinitions) > 0 {
			columns = table.ColumnDefinitions
		}
		table.ColumnDefinitions = columns
		return table, nil
	})
}

func (r *Resource) convertTable(lazy *unstructured.Lazy) (*metav1.Table, error) {
	if lazy.GetKind() != tableKind || lazy.GetAPIVersion() != metaVersion {
		return nil, fmt.Errorf("the response is a %s %s, not a table: the server cannot print this resource",
			printable(lazy.GetAPIVersion()), printable(lazy.GetKind()))
	}
	obj, err := lazy.Object()
	if err != nil {
		return nil, err
	}
	rows, _ := obj.Object["rows"].([]any)
	delete(obj.Object, "rows")
	table := &metav1.Table{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, table); err != nil {
		return nil, fmt.Errorf("decode the table: %w", err)
	}
	table.Rows = make([]metav1.TableRow, len(rows))
	for i, row := range rows {
		if table.Rows[i], err = r.convertRow(row); err != nil {
			return nil, fmt.Errorf("decode row %d of the table: %w", i, err)
		}
	}
	return table, nil
}

// convertRow keeps the cells and the object as decoded; apimachinery would convert them to float64 and bytes.
func (r *Resource) convertRow(value any) (row metav1.TableRow, err error) {
	fields, ok := value.(map[string]any)
	if !ok {
		return row, errors.New("not a JSON object")
	}
	row.Cells, _ = fields["cells"].([]any)
	if object, ok := fields["object"].(map[string]any); ok {
		obj := &unstructured.Object{Object: object}
		if isPartial(obj) {
			r.setKind(obj)
		}
		row.Object.Object = obj
	}
	if conditions, ok := fields["conditions"]; ok {
		var decoded struct {
			Conditions []metav1.TableRowCondition `json:"conditions"`
		}
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"conditions": conditions}, &decoded)
		row.Conditions = decoded.Conditions
	}
	return row, err
}
