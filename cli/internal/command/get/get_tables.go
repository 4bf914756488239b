package get

import (
	"context"
	"errors"
	"iter"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/dynamic"
)

// tablePart is a target with its rows. Consecutive parts of a resource form a table.
type tablePart struct {
	target resource.Target
	rows   iter.Seq2[*dynamic.TableRow, error]
}

func (c *getCommand) printTables(ctx context.Context, targets []resource.Target) error {
	parts, errs := c.tableParts(ctx, targets)
	if hasSeveralKinds(parts) { // the kind prefix depends on the lists accepted by the server
		var stop func()
		parts, stop = c.startParts(parts, &errs)
		defer stop()
	}
	if c.oneTable && hasSeveralKinds(parts) {
		return errors.Join(append(errs, c.printOneTable(ctx, parts))...)
	}
	written := false
	withKind := hasSeveralKinds(parts)
	for len(parts) > 0 {
		n := 1
		for n < len(parts) && parts[n].target.Resource.APIResource() == parts[0].target.Resource.APIResource() {
			n++
		}
		opts := c.tableOptions(parts[0].target.Resource, withKind)
		opts.WithSeparator = written && !c.output.NoHeaders
		rows, err := c.printTable(parts[:n], opts, &errs)
		if err != nil {
			return err
		}
		written = written || rows > 0
		parts = parts[n:]
	}
	if !written && !c.ignoreNotFound && len(errs) == 0 {
		return c.noResources(ctx, targets)
	}
	return errors.Join(errs...)
}

// tableParts prepares the rows of each target. A named object is read immediately; a missing object has no part.
func (c *getCommand) tableParts(ctx context.Context, targets []resource.Target) ([]tablePart, []error) {
	var parts []tablePart
	var errs []error
	for _, target := range targets {
		rows := target.Rows(ctx, c.include(target), c.listOptions())
		if target.Name == "" {
			parts = append(parts, tablePart{target, rows})
			continue
		}
		for row, err := range rows {
			if err == nil {
				parts = append(parts, tablePart{target, func(yield func(*dynamic.TableRow, error) bool) { yield(row, nil) }})
			} else if err = c.unlessIgnored(err); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return parts, errs
}

// maxStarting is the number of concurrent first requests of lists.
const maxStarting = 8

// startParts requests the first page of every part, with up to maxStarting concurrent requests, and drops failed parts. stop ends
// unfinished lists.
func (c *getCommand) startParts(parts []tablePart, errs *[]error) (started []tablePart, stop func()) {
	type start struct {
		next func() (*dynamic.TableRow, error, bool)
		stop func()
		row  *dynamic.TableRow
		err  error
		ok   bool
	}
	starts := make([]start, len(parts))
	var group sync.WaitGroup
	limit := make(chan struct{}, maxStarting)
	for i, part := range parts {
		group.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			next, stop := iter.Pull2(part.rows)
			row, err, ok := next()
			starts[i] = start{next, stop, row, err, ok}
		})
	}
	group.Wait()
	for i, part := range parts {
		s := starts[i]
		if s.err != nil {
			*errs = append(*errs, s.err)
			continue
		}
		started = append(started, tablePart{part.target, func(yield func(*dynamic.TableRow, error) bool) {
			for row, err, ok := s.row, s.err, s.ok; ok; row, err, ok = s.next() {
				if !yield(row, err) {
					return
				}
			}
		}})
	}
	return started, func() {
		for _, s := range starts {
			s.stop()
		}
	}
}

func (c *getCommand) include(target resource.Target) metav1.IncludeObjectPolicy {
	return c.output.Include(c.finder.Selection.AllNamespaces && target.Resource.APIResource().Namespaced)
}

func hasSeveralKinds(parts []tablePart) bool {
	for _, part := range parts {
		if part.target.Resource.APIResource().GVK != parts[0].target.Resource.APIResource().GVK {
			return true
		}
	}
	return false
}

// tableOptions returns the options for a table of the resource.
func (c *getCommand) tableOptions(r *dynamic.Resource, withKind bool) *print.TableOptions {
	resource := r.APIResource()
	return &print.TableOptions{
		Kind: resource.GVK.GroupKind(), WithKind: withKind,
		WithNamespace: c.finder.Selection.AllNamespaces && resource.Namespaced,
		WithEvents:    c.outputWatchEvents,
	}
}

// printTable writes the rows of parts as a table and returns the number of rows.
func (c *getCommand) printTable(parts []tablePart, opts *print.TableOptions, errs *[]error) (int, error) {
	table, err := c.output.Table(c.Out, opts)
	if err != nil {
		return 0, err
	}
	for row, err := range c.sortedRows(parts, errs) {
		if err != nil {
			return 0, err
		}
		if err := table.Row(row); err != nil {
			return 0, err
		}
	}
	return table.Rows(), table.Flush()
}

// sortedRows yields the rows of parts, sorted if SortBy is set. A server error is appended to errs and ends its part.
func (c *getCommand) sortedRows(parts []tablePart, errs *[]error) iter.Seq2[*dynamic.TableRow, error] {
	rows := func(yield func(*dynamic.TableRow, error) bool) {
		for _, part := range parts {
			for row, err := range part.rows {
				if err != nil {
					*errs = append(*errs, err)
					break
				}
				if !yield(row, nil) {
					return
				}
			}
		}
	}
	if c.output.SortBy == "" {
		return rows
	}
	var all []*dynamic.TableRow
	for row, err := range rows {
		if err == nil { // errors are in errs
			all = append(all, row)
		}
	}
	err := c.output.SortRows(all)
	return func(yield func(*dynamic.TableRow, error) bool) {
		if err != nil {
			yield(nil, err)
			return
		}
		for _, row := range all {
			if !yield(row, nil) {
				return
			}
		}
	}
}
