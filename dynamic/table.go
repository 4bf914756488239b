package dynamic

import (
	"context"
	"fmt"
	"iter"
	"net/http"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const tableKind = "Table"

// Tables reads what kubectl get prints: the server's columns and rows, for custom resources those of
// additionalPrinterColumns. It is as cheap, immutable and safe for concurrent use as the [Resource] that it belongs to.
//
// A cell is a string, bool, int64, float64, nil, or a []any or map[string]any of these. What a column's priority above 0
// marks kubectl shows with -o wide alone. A row's Object.Object is a *[unstructured.Object] or, without one, nil. A
// server that knows no tables is an error. See
// https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables.
type Tables struct {
	of *Resource
}

// Tables gives the resource as tables, whose rows come with what include says: metav1.IncludeNone,
// metav1.IncludeMetadata (as of [Resource.Metadata]), metav1.IncludeObject, or the server's choice, which is
// metadata, where it is "".
func (r *Resource) Tables(include metav1.IncludeObjectPolicy) *Tables {
	chosen := *r
	chosen.form = form{as: tableKind, include: include}
	return &Tables{of: &chosen}
}

// Get reads the table of one object, which has one row.
func (t *Tables) Get(ctx context.Context, name string, opts *metav1.GetOptions) (*metav1.Table, error) {
	path, err := t.of.objectPath("get", name)
	if err != nil {
		return nil, err
	}
	query, err := queryOf(opts)
	if err != nil {
		return nil, err
	}
	return t.read(ctx, "get", &transport.Request{Method: http.MethodGet, Path: path, Query: query}, single)
}

// List reads the table of the objects that opts select, with one request: all of them, or opts.Limit of them and the
// token in the table's Continue that goes on behind them when it is passed in opts.
func (t *Tables) List(ctx context.Context, opts *metav1.ListOptions) (*metav1.Table, error) {
	request, err := t.of.collectionRequest("list", opts)
	if err != nil {
		return nil, err
	}
	return t.read(ctx, "list", request, list)
}

func (t *Tables) read(ctx context.Context, verb string, request *transport.Request, many amount) (*metav1.Table, error) {
	var table *metav1.Table
	err := t.of.answerTo(ctx, request, many, func(answer []byte) error {
		obj, err := unstructured.NewLazy(answer)
		if err == nil {
			table, err = t.of.tableOf(obj)
		}
		if err != nil {
			return fmt.Errorf("%s %s: GET %s%s: %w", verb, t.of, t.of.conn.Server(), request.Path, err)
		}
		return nil
	})
	return table, err
}

// Watch yields what changes as tables of one row, and otherwise does what [Resource.Watch] does. Each table has the
// columns, though the server sends them once.
func (t *Tables) Watch(ctx context.Context, opts *metav1.ListOptions) iter.Seq2[unstructured.Event[metav1.Table], error] {
	return watchAs(ctx, t.of, opts, func() reader[metav1.Table] {
		var columns []metav1.TableColumnDefinition
		return through(func(obj *unstructured.Lazy) (*metav1.Table, error) {
			table, err := t.of.tableOf(obj)
			if err != nil {
				return nil, err
			}
			if len(table.ColumnDefinitions) > 0 {
				columns = table.ColumnDefinitions
			}
			table.ColumnDefinitions = columns
			return table, nil
		})
	})
}

func (r *Resource) tableOf(lazy *unstructured.Lazy) (*metav1.Table, error) {
	if lazy.GetKind() != tableKind || lazy.GetAPIVersion() != metaVersion {
		return nil, fmt.Errorf("the server answered %s %s and no table: it cannot print this resource",
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
		return nil, fmt.Errorf("read the table that the server answered: %w", err)
	}
	table.Rows = make([]metav1.TableRow, len(rows))
	for i, row := range rows {
		if table.Rows[i], err = r.rowOf(row); err != nil {
			return nil, fmt.Errorf("read row %d of the table that the server answered: %w", i, err)
		}
	}
	return table, nil
}

// rowOf keeps the cells and the object as they were decoded; apimachinery would make float64 and bytes of them.
func (r *Resource) rowOf(row any) (read metav1.TableRow, err error) {
	fields, ok := row.(map[string]any)
	if !ok {
		return read, fmt.Errorf("it is no object")
	}
	read.Cells, _ = fields["cells"].([]any)
	if object, ok := fields["object"].(map[string]any); ok {
		obj := &unstructured.Object{Object: object}
		if isPartial(obj) {
			obj.SetGroupVersionKind(r.ownKind())
		}
		read.Object.Object = obj
	}
	if conditions, ok := fields["conditions"]; ok {
		var of struct {
			Conditions []metav1.TableRowCondition `json:"conditions"`
		}
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"conditions": conditions}, &of)
		read.Conditions = of.Conditions
	}
	return read, err
}
