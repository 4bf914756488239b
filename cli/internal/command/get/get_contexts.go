package get

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/dynamic"
)

// contextRows are the rows of a context, or why there are none or not all.
type contextRows struct {
	index  int
	tables []contextTable
	errs   []error
}

// contextTable has the rows of a resource.
type contextTable struct {
	resource *dynamic.Resource
	rows     []*dynamic.TableRow
}

// orderDelay is the time in which the rows of contexts are put in the order of --contexts. Later rows are printed when they arrive.
const orderDelay = 500 * time.Millisecond

// runContexts prints the rows of several contexts, with a column of the context. An unreachable cluster delays no rows of others.
func (c *getCommand) runContexts(ctx context.Context, args []string) error {
	if err := c.validateContexts(); err != nil {
		return err
	}
	if c.watch || c.watchOnly {
		return c.watchContexts(ctx, args)
	}
	if !c.output.IsTable() {
		return c.printContextObjects(ctx, args)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	names := c.contexts
	arrived := make(chan contextRows, len(names))
	for i, name := range names {
		go func() {
			rows := c.readContext(ctx, name, args)
			rows.index = i
			arrived <- rows
		}()
	}
	printer := &contextPrinter{getCommand: c, names: names}
	delay := time.NewTimer(orderDelay)
	defer delay.Stop()
	var early []contextRows
	for len(early) < len(names) {
		select {
		case rows := <-arrived:
			early = append(early, rows)
			continue
		case <-delay.C:
		}
		break
	}
	slices.SortFunc(early, func(a, b contextRows) int { return cmp.Compare(a.index, b.index) })
	for _, rows := range early {
		if err := printer.print(&rows); err != nil {
			return err
		}
	}
	if err := printer.flush(); err != nil {
		return err
	}
	for range len(names) - len(early) {
		rows := <-arrived
		if err := errors.Join(printer.print(&rows), printer.flush()); err != nil {
			return err
		}
	}
	return printer.end()
}

func (c *getCommand) validateContexts() error {
	f := c.Connection
	switch {
	case c.subresource != "" || !c.finder.Files.IsEmpty() || c.output.SortBy != "":
		return errors.New("--contexts is incompatible with --subresource, --sort-by and files (use --context for one cluster)")
	case cmp.Or(f.Context, f.Server, f.Cluster, f.User, f.Token, f.Username, f.ClientCertificate) != "":
		return errors.New("--contexts is incompatible with --context, --server, --cluster, --user and credentials")
	}
	return nil
}

// readContext reads the rows of a context over a connection of its own.
func (c *getCommand) readContext(ctx context.Context, name string, args []string) contextRows {
	own := c.forContext(name)
	defer own.Connection.Close()
	targets, err := own.finder.Targets(ctx, args)
	if err != nil {
		return contextRows{errs: []error{err}}
	}
	parts, errs := own.tableParts(ctx, targets)
	read := contextRows{errs: errs}
	for _, part := range parts {
		found := contextTable{resource: part.target.Resource}
		for row, err := range part.rows {
			if err != nil {
				read.errs = append(read.errs, err)
				break
			}
			found.rows = append(found.rows, row)
		}
		read.tables = append(read.tables, found)
	}
	return read
}

// forContext returns a copy of c with a connection of its own.
func (c *getCommand) forContext(name string) *getCommand {
	own := *c
	own.State = &command.State{Streams: c.Streams, Connection: c.Connection.ForContext(name), Args: c.Args}
	own.finder.Connection = own.Connection
	return &own
}

// contextPrinter prints rows of contexts. Consecutive rows of a resource share a table.
type contextPrinter struct {
	*getCommand

	names  []string
	table  *print.Table
	opts   *print.TableOptions
	rows   int
	failed bool
}

func (p *contextPrinter) print(rows *contextRows) error {
	name := p.names[rows.index]
	for _, err := range rows.errs {
		p.failed = true
		p.Errorf("context %s: %s", name, exit.Message(err))
	}
	withKind := slices.ContainsFunc(rows.tables, func(table contextTable) bool {
		return table.resource.APIResource().GVK != rows.tables[0].resource.APIResource().GVK
	})
	for _, part := range rows.tables {
		if err := p.use(p.tableOptions(part.resource, withKind)); err != nil {
			return err
		}
		p.table.SetContext(name)
		before := p.table.Rows()
		for _, row := range part.rows {
			if err := p.table.Row(row); err != nil {
				return err
			}
		}
		p.rows += p.table.Rows() - before
	}
	return nil
}

// use begins a new table unless the last table has the same options.
func (p *contextPrinter) use(opts *print.TableOptions) error {
	opts.WithContext = true
	if p.opts != nil && *p.opts == *opts {
		return nil
	}
	if err := p.flush(); err != nil {
		return err
	}
	p.opts = opts
	next := *opts
	next.WithSeparator = p.rows > 0 && !p.output.NoHeaders
	table, err := p.output.Table(p.Out, &next)
	p.table = table
	return err
}

func (p *contextPrinter) flush() error {
	if p.table == nil {
		return nil
	}
	return p.table.Flush()
}

func (p *contextPrinter) end() error {
	switch {
	case p.failed:
		return &exit.Error{Code: 1}
	case p.rows == 0 && !p.ignoreNotFound:
		p.Errorf("No resources found")
	}
	return nil
}
