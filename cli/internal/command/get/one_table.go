package get

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/dynamic"
)

// union maps rows of several kinds to a table with the columns of all kinds. Age stays behind the columns added by later kinds.
type union struct {
	columns []metav1.TableColumnDefinition
}

// add adds the columns of a kind. A column with a known name is not added again.
func (u *union) add(columns []metav1.TableColumnDefinition) {
	if u.columns == nil {
		u.columns = slices.Clone(columns)
		return
	}
	for _, column := range columns {
		if u.index(column.Name) >= 0 {
			continue
		}
		at := u.index("Age")
		if at < 0 {
			at = len(u.columns)
		}
		u.columns = slices.Insert(slices.Clone(u.columns), at, column)
	}
}

func (u *union) index(name string) int {
	return slices.IndexFunc(u.columns, func(column metav1.TableColumnDefinition) bool { return column.Name == name })
}

// row returns a row with the union's columns. The name is KIND/NAME.
func (u *union) row(row *dynamic.TableRow, kind string) *dynamic.TableRow {
	cells := make([]any, len(u.columns))
	for i, cell := range row.Cells {
		if i >= len(row.Columns) {
			break
		}
		if row.Columns[i].Format == "name" {
			if name, ok := cell.(string); ok {
				cell = kind + "/" + name
			}
		}
		if at := u.index(row.Columns[i].Name); at >= 0 {
			cells[at] = cell
		}
	}
	return &dynamic.TableRow{Columns: u.columns, Cells: cells, Conditions: row.Conditions, Object: row.Object}
}

// printOneTable writes all parts as a single table. It takes the columns from the first row of each kind.
func (c *getCommand) printOneTable(ctx context.Context, parts []tablePart) error {
	var errs []error
	var columns union
	for _, part := range parts {
		for row, err := range part.rows {
			if err == nil {
				columns.add(row.Columns)
			}
			break
		}
	}
	table, err := c.output.Table(c.Out, &print.TableOptions{WithNamespace: c.finder.Selection.AllNamespaces, WithEvents: c.outputWatchEvents})
	if err != nil {
		return err
	}
	for _, part := range parts {
		kind := strings.ToLower(part.target.Resource.APIResource().GVK.GroupKind().String())
		for row, err := range c.sortedRows([]tablePart{part}, &errs) {
			if err != nil {
				return err
			}
			if err := table.Row(columns.row(row, kind)); err != nil {
				return err
			}
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if table.Rows() == 0 && len(errs) == 0 {
		c.Errorf("No resources found")
	}
	return errors.Join(append(errs, ctx.Err())...)
}

// columnBarrier holds the events of several kinds until the first row of each kind, or the end of its list, is known. The table
// then has a single header with the columns of all kinds.
type columnBarrier struct {
	mu      sync.Mutex
	columns [][]metav1.TableColumnDefinition
	arrived []bool
	pending int
	ready   chan struct{}
	all     union
}

func newColumnBarrier(targets int) *columnBarrier {
	return &columnBarrier{
		columns: make([][]metav1.TableColumnDefinition, targets), arrived: make([]bool, targets),
		pending: targets, ready: make(chan struct{}),
	}
}

// wait blocks until it was called for every target, or ctx is done. row is nil for an event without a row.
func (b *columnBarrier) wait(ctx context.Context, target int, row *dynamic.TableRow) error {
	b.arrive(target, row)
	select {
	case <-b.ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (b *columnBarrier) arrive(target int, row *dynamic.TableRow) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.arrived[target] {
		return
	}
	b.arrived[target] = true
	if row != nil {
		b.columns[target] = row.Columns
	}
	if b.pending--; b.pending > 0 {
		return
	}
	for _, columns := range b.columns {
		if columns != nil {
			b.all.add(columns)
		}
	}
	close(b.ready)
}

// union returns the columns of all targets. It must be called after wait.
func (b *columnBarrier) union() *union { return &b.all }
