package print

import (
	"github.com/itchyny/gojq"

	"github.com/anykind/anykind/unstructured"
)

// Where is the condition of --where, a jq expression. A nil Where holds for every object.
type Where struct{ code *gojq.Code }

// ParseWhere parses a condition. It returns nil for "".
func ParseWhere(expression string) (*Where, error) {
	if expression == "" {
		return nil, nil
	}
	code, err := compileJQ(expression)
	if err != nil {
		return nil, err
	}
	return &Where{code}, nil
}

// Match reports whether the first result of the expression for an object is neither false nor null.
func (w *Where) Match(obj *unstructured.Object) (bool, error) { return w.holds(obj.Object) }

func (w *Where) holds(object map[string]any) (bool, error) {
	if w == nil {
		return true, nil
	}
	return holds(w.code, object)
}
