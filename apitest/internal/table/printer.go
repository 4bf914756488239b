package table

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anykind/anykind/apitest/internal/kinds"
)

// printer computes the rows of a resource's tables.
type printer struct {
	resource   *kinds.Resource
	now        time.Time
	columns    []kinds.Column
	cells      func(object) []any
	conditions func(object) []any // of a row; may be nil
	isDefault  bool               // the real server has no printer for the kind
	order      func(a, b object) int
}

func newPrinter(resource *kinds.Resource, now time.Time) (p *printer, warning string, err error) {
	columns, err := resource.Columns()
	if err != nil {
		return nil, "", err
	}
	p = &printer{resource: resource, now: now, columns: columns}
	if resource.Definition != nil {
		return p, "", p.setCustom(columns)
	}
	key := resource.Plural
	if resource.Group != "" {
		key += "." + resource.Group
	}
	found, known := builtinCells(key)
	switch {
	case known:
		p.cells = found
	case hasDefaultColumns(columns):
		p.cells = defaultCells
		p.isDefault = true
	default:
		p.cells = p.fallbackCells
		warning = fmt.Sprintf("apitest: not printed: cells of %s besides name and age", key)
	}
	switch key {
	case "pods":
		p.conditions = podRowConditions
	case "flowschemas.flowcontrol.apiserver.k8s.io":
		p.order = func(a, b object) int {
			return cmp.Or(cmp.Compare(a.number("spec", "matchingPrecedence"), b.number("spec", "matchingPrecedence")), strings.Compare(a.name(), b.name()))
		}
	}
	return p, warning, nil
}

// sorted returns the items in the order of the rows.
func (p *printer) sorted(items []any) []any {
	if p.order == nil {
		return items
	}
	return slices.SortedStableFunc(slices.Values(items), func(a, b any) int {
		left, _ := a.(map[string]any)
		right, _ := b.(map[string]any)
		return p.order(object{left, p.now}, object{right, p.now})
	})
}

// hasDefaultColumns reports whether the columns are the default of kinds without a printer in the real server.
func hasDefaultColumns(columns []kinds.Column) bool {
	return len(columns) == 2 && columns[0].Name == "Name" && columns[1].Name == "Created At"
}

func defaultCells(o object) []any {
	created := o.time("metadata", "creationTimestamp")
	return []any{o.name(), created.UTC().Format(time.RFC3339)}
}

// fallbackCells returns the name and the age.
func (p *printer) fallbackCells(o object) []any {
	cells := make([]any, len(p.columns))
	for i, c := range p.columns {
		switch c.Name {
		case "Name":
			cells[i] = o.name()
		case "Age":
			cells[i] = o.age()
		default:
			cells[i] = "<unknown>"
		}
	}
	return cells
}
