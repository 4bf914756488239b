package dynamic

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/unstructured"
)

// TableRow is a row of a table as kubectl get prints it: the server's columns and cells, for custom resources of
// additionalPrinterColumns.
type TableRow struct {
	// Columns are the table's columns, one for each cell. Rows of one response share them: they are read-only. kubectl prints columns
	// with a priority above 0 with -o wide only.
	Columns []metav1.TableColumnDefinition
	// Cells are a string, bool, int64, float64, nil, or a []any or map[string]any of these. An event without a row, such as a bookmark,
	// has none.
	Cells []any
	// Conditions mark the row, such as Completed for a pod that has ended.
	Conditions []metav1.TableRowCondition
	// Object is the row's object as include of [Handle.Tables] requires it, nil with metav1.IncludeNone.
	Object *unstructured.Object
	// ResourceVersion is the table's: of the list, or of the event's object.
	ResourceVersion string
}

// Tables returns a handle that reads objects as rows of the server's tables. include selects the content of each row's object:
// metav1.IncludeNone, metav1.IncludeMetadata (as with [Handle.Metadata]), metav1.IncludeObject, or "" for the server's default,
// metadata. Each row has the columns, though the server sends them once in a watch. A row of Get must be the only row. A server
// that returns no table for the resource is an error. See
// https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables.
func (e *endpoint) Tables(include metav1.IncludeObjectPolicy) *Handle[TableRow] {
	return &Handle[TableRow]{*e.withRepresentation(representation{kind: tableKind, include: include}), rowCodec{}}
}

var errTable = errors.New("rows of a table are no objects")

func (*TableRow) codec() codec[TableRow] { return rowCodec{} }

// rowCodec is the codec of TableRow. Rows are only read.
type rowCodec struct{}

func (rowCodec) form() form { return tableRows{} }

func (rowCodec) decode(_ *endpoint, item item) (*TableRow, error) {
	if item.row == nil { // an inferred deletion
		return &TableRow{Object: item.object, ResourceVersion: item.object.GetResourceVersion()}, nil
	}
	return item.row, nil
}

func (rowCodec) encode(*TableRow) (*unstructured.Object, error) { return nil, errTable }

func (rowCodec) change(*unstructured.Object, func(*TableRow) error) error { return errTable }

// tableRows is the form of rows. A body holds a table.
type tableRows struct{}

func (f tableRows) protobuf() form { return f } // servers send tables as JSON only

func (tableRows) decodeItem(e *endpoint, body []byte) (item, error) {
	table, err := e.decodeTable(e.limits(), body)
	if err != nil {
		return item{}, err
	}
	if len(table.rows) != 1 {
		return item{}, fmt.Errorf("the table of one object has %d rows", len(table.rows))
	}
	return table.next()
}

func (tableRows) readItems(e *endpoint, body io.Reader, _ *jsonread.Interner, _ bool) itemReader {
	return &rowReader{table: table{endpoint: e}, body: body}
}

func (tableRows) readEvents(e *endpoint, body io.Reader, _ *jsonread.Interner) eventReader {
	return &rowEvents{endpoint: e, events: lazyEvents{e.limits().NewWatchDecoder(body)}}
}

// rowReader reads the rows of a list. It decodes the table with the first row.
type rowReader struct {
	table
	body io.Reader // nil after the first row
}

func (r *rowReader) next() (item, error) {
	if r.body != nil {
		buffer, _ := buffers.Get().(*bytes.Buffer)
		defer recycle(buffer)
		limits := r.endpoint.limits().OfPage()
		if err := limits.ReadInto(buffer, r.body); err != nil {
			return item{}, fmt.Errorf("read the response: %w", err)
		}
		table, err := r.endpoint.decodeTable(limits, buffer.Bytes())
		if err != nil {
			return item{}, err
		}
		*r = rowReader{table: *table}
	}
	return r.table.next()
}

func (r *rowReader) meta() metav1.ListMeta { return r.listMeta }

func (r *rowReader) typeMeta() metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: metaVersion, Kind: tableKind}
}

// rowEvents reads the rows of a watch. Each event has a table, usually of one row.
type rowEvents struct {
	endpoint  *endpoint
	events    lazyEvents
	eventType watch.EventType
	table     *table // of the last event; nil before the first event
}

// next returns the next row of the last event or, after its last row, of the next event. An event without rows gets one without
// cells.
func (r *rowEvents) next() (itemEvent, error) {
	if r.table == nil || len(r.table.rows) == r.table.count {
		event, err := r.events.next()
		if err != nil {
			return itemEvent{}, err
		}
		table, err := r.endpoint.convertTable(event.item.lazy)
		if err != nil {
			return itemEvent{}, err
		}
		if len(table.columns) == 0 && r.table != nil {
			table.columns = r.table.columns // the server sends them with the first event
		}
		if len(table.rows) == 0 {
			table.rows = []any{map[string]any{}}
		}
		r.eventType = event.eventType
		r.table = table
	}
	row, err := r.table.next()
	return itemEvent{r.eventType, row}, err
}

// table is a decoded table. Its rows are converted when they are read.
type table struct {
	endpoint *endpoint
	listMeta metav1.ListMeta
	columns  []metav1.TableColumnDefinition
	rows     []any
	count    int // rows read
}

func (e *endpoint) decodeTable(limits unstructured.Limits, body []byte) (*table, error) {
	lazy, err := limits.DecodeLazy(body)
	if err != nil {
		return nil, notObjectError(err)
	}
	return e.convertTable(lazy)
}

func (e *endpoint) convertTable(lazy *unstructured.Lazy) (*table, error) {
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
	decoded := &metav1.Table{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, decoded); err != nil {
		return nil, fmt.Errorf("decode the table: %w", err)
	}
	return &table{endpoint: e, listMeta: decoded.ListMeta, columns: decoded.ColumnDefinitions, rows: rows}, nil
}

// next returns the next row, or io.EOF.
func (t *table) next() (item, error) {
	if t.count == len(t.rows) {
		return item{}, io.EOF
	}
	row, err := t.endpoint.convertRow(t.rows[t.count])
	if err != nil {
		return item{}, fmt.Errorf("decode row %d of the table: %w", t.count, err)
	}
	row.Columns = t.columns
	row.ResourceVersion = t.listMeta.ResourceVersion
	t.rows[t.count] = nil
	t.count++
	return item{row: row}, nil
}

// convertRow keeps the cells and the object as decoded; apimachinery would convert them to float64 and bytes.
func (e *endpoint) convertRow(value any) (*TableRow, error) {
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("not a JSON object")
	}
	row := &TableRow{}
	row.Cells, _ = fields["cells"].([]any)
	if object, ok := fields["object"].(map[string]any); ok {
		obj := &unstructured.Object{Object: object}
		if isPartial(obj) {
			e.setKind(obj)
		}
		row.Object = obj
	}
	if conditions, ok := fields["conditions"]; ok {
		var decoded struct {
			Conditions []metav1.TableRowCondition `json:"conditions"`
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"conditions": conditions}, &decoded); err != nil {
			return nil, err
		}
		row.Conditions = decoded.Conditions
	}
	return row, nil
}
