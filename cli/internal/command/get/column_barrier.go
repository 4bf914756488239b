package get

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
)

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
