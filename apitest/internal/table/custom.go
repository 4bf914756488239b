package table

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/unstructured/jsonpath"
)

// nameDescription is the description of the first column in tables of custom resources.
const nameDescription = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow " +
	"a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and " +
	"configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"

// setCustom sets the columns and cells of a custom resource.
func (p *printer) setCustom(columns []kinds.Column) error {
	p.columns = []kinds.Column{{Name: "Name", Type: "string", Format: "name", Description: nameDescription}}
	paths := make([]*jsonpath.Template, 0, len(columns))
	for _, c := range columns {
		path, err := jsonpath.Parse("{"+c.JSONPath+"}", &jsonpath.Options{AllowMissingKeys: true})
		if err != nil {
			return fmt.Errorf("print column %q: %w", c.Name, err)
		}
		paths = append(paths, path)
		if c.Description == "" {
			c.Description = "Custom resource definition column (in JSONPath format): " + c.JSONPath
		}
		p.columns = append(p.columns, c)
	}
	p.cells = func(o object) []any {
		cells := []any{o.name()}
		for i, path := range paths {
			cells = append(cells, o.customCell(path, columns[i].Type))
		}
		return cells
	}
	return nil
}

// customCell returns the first value selected by the path, converted to the column's type, or nil if there is none.
func (o object) customCell(path *jsonpath.Template, columnType string) any {
	values, err := path.Values(o.content)
	if err != nil || len(values) == 0 {
		return nil
	}
	switch value := values[0]; columnType {
	case "string":
		return printValue(value)
	case "integer":
		switch value := value.(type) {
		case int64:
			return value
		case float64:
			return int64(value)
		}
	case "number":
		switch value := value.(type) {
		case int64:
			return float64(value)
		case float64:
			return value
		}
	case "boolean":
		if flag, is := value.(bool); is {
			return flag
		}
	case "date":
		if text, is := value.(string); is {
			moment, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return "<invalid>"
			}
			return o.since(moment)
		}
	}
	return nil
}

// printValue returns a value as printed by a JSONPath template.
func printValue(value any) any {
	switch value := value.(type) {
	case nil:
		return "<no value>"
	case map[string]any, []any:
		text, err := json.Marshal(value)
		if err != nil {
			return nil
		}
		return string(text)
	default:
		return fmt.Sprint(value)
	}
}
