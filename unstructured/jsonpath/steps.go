package jsonpath

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/anykind/anykind/internal/sanitize"
)

// step selects values from the input.
type step interface {
	apply(e *evaluation, input []any) ([]any, error)
}

type (
	// field selects a field of maps by name.
	field string
	// wildcard selects the fields of maps, by name, and the elements of lists.
	wildcard struct{}
	// descendants selects the non-empty maps, lists and strings at any depth, parents first.
	descendants struct{}
	// index selects an element of lists, from the end if it is negative.
	index int
	// slice selects elements of lists from start to end, or to the list's end if end is nil. Negative positions count from the
	// end.
	slice struct {
		start int
		end   *int
		step  int
	}
	// union concatenates the selections of its alternatives.
	union [][]step
	// filter selects the list elements with a true comparison. Without an operator, it selects elements with a left value.
	filter struct {
		left, right []step
		operator    string
	}
	// literal yields a number or bool for each input value.
	literal struct{ value any }
	// literalText is a quoted text.
	literalText string
)

// evaluation is the state of a call of Execute or Values.
type evaluation struct {
	allowMissingKeys bool
	values           int // selected so far
}

// evaluate emits the results of the template over data.
func (t *Template) evaluate(data any, emit func(result)) error {
	data, err := plain(data)
	if err != nil {
		return err
	}
	e := &evaluation{allowMissingKeys: t.opts.AllowMissingKeys}
	if err := e.run(t.nodes, data, emit); err != nil {
		return fmt.Errorf("jsonpath: %w", err)
	}
	return nil
}

func (e *evaluation) run(nodes []node, current any, emit func(result)) error {
	for _, n := range nodes {
		if len(n.steps) == 0 { // a text, or an action such as {@}
			if err := e.count(1); err != nil {
				return err
			}
		}
		if n.text != "" {
			emit(result{value: n.text, isText: true})
			continue
		}
		values, err := e.applyAll(n.steps, []any{current})
		if err != nil {
			return err
		}
		for i, v := range values {
			if !n.isRange {
				emit(result{value: v, afterSpace: i > 0})
			} else if err := e.run(n.body, v, emit); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *evaluation) applyAll(steps []step, values []any) (_ []any, err error) {
	for _, s := range steps {
		if values, err = s.apply(e, values); err != nil {
			return nil, err
		}
		if err := e.count(len(values) + 1); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (e *evaluation) count(n int) error {
	e.values += n
	return e.checkLimit(0)
}

// checkLimit returns errTooManyValues if n more values of an unfinished step exceed maxValues. It does not count them.
func (e *evaluation) checkLimit(n int) error {
	if e.values+n > maxValues {
		return errTooManyValues
	}
	return nil
}

func (f field) apply(e *evaluation, input []any) ([]any, error) {
	var out []any
	for _, v := range input {
		m, _ := v.(map[string]any)
		if value, found := m[string(f)]; found {
			out = append(out, value)
		}
	}
	if len(out) == 0 && len(input) > 0 && !e.allowMissingKeys {
		return nil, fmt.Errorf("%s is not found", sanitize.Text(string(f), maxShown))
	}
	return out, nil
}

// children returns the fields of a map, by name, or the elements of a list.
func children(v any) []any {
	switch v := v.(type) {
	case map[string]any:
		out := make([]any, 0, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out = append(out, v[name])
		}
		return out
	case []any:
		return v
	default:
		return nil
	}
}

func (wildcard) apply(e *evaluation, input []any) ([]any, error) {
	var out []any
	for _, v := range input {
		below := children(v)
		if err := e.checkLimit(len(out) + len(below)); err != nil {
			return nil, err
		}
		out = append(out, below...)
	}
	return out, nil
}

func (descendants) apply(e *evaluation, input []any) (out []any, err error) {
	for _, v := range input {
		if out, err = e.descend(out, v, 0); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (e *evaluation) descend(out []any, v any, depth int) (_ []any, err error) {
	if depth > maxDepth {
		return nil, fmt.Errorf(".. descends more than %d levels", maxDepth)
	}
	below := children(v)
	if text, _ := v.(string); len(below) == 0 && text == "" {
		return out, nil
	}
	if err := e.count(1); err != nil {
		return nil, err
	}
	out = append(out, v)
	for _, child := range below {
		if out, err = e.descend(out, child, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// lists calls do for each list in input; null is skipped.
func lists(input []any, do func(list []any) error) error {
	for _, v := range input {
		list, isList := v.([]any)
		if !isList && v != nil {
			return fmt.Errorf("%s is not a list", kindOf(v))
		}
		if err := do(list); err != nil {
			return err
		}
	}
	return nil
}

func (n index) apply(_ *evaluation, input []any) ([]any, error) {
	var out []any
	err := lists(input, func(list []any) error {
		if list == nil {
			return nil
		}
		at := int(n)
		if at < 0 {
			at += len(list)
		}
		if at < 0 || at >= len(list) {
			return fmt.Errorf("array index out of bounds: index %d, length %d", int(n), len(list))
		}
		out = append(out, list[at])
		return nil
	})
	return out, err
}

func (s slice) apply(e *evaluation, input []any) ([]any, error) {
	var out []any
	err := lists(input, func(list []any) error {
		start := s.start
		end := len(list)
		if start < 0 {
			start += len(list)
		}
		if s.end != nil {
			if end = *s.end; end < 0 {
				end += len(list)
			}
		}
		switch {
		case list == nil || start == end:
			return nil
		case start < 0 || start >= len(list):
			return fmt.Errorf("array index out of bounds: index %d, length %d", start, len(list))
		case end < 0 || end > len(list):
			return fmt.Errorf("array index out of bounds: index %d, length %d", end-1, len(list))
		case start > end:
			return fmt.Errorf("starting index %d is greater than ending index %d", start, end)
		}
		for i := start; i < end; i += min(s.step, len(list)) {
			out = append(out, list[i])
		}
		return e.checkLimit(len(out))
	})
	return out, err
}

func (u union) apply(e *evaluation, input []any) ([]any, error) {
	var out []any
	for _, steps := range u {
		values, err := e.applyAll(steps, input)
		if err != nil {
			return nil, err
		}
		out = append(out, values...)
	}
	return out, nil
}

func (f filter) apply(e *evaluation, input []any) ([]any, error) {
	var out []any
	for _, v := range input {
		list, isList := v.([]any)
		if !isList {
			return nil, fmt.Errorf("%s is not a list and cannot be filtered", kindOf(v))
		}
		for _, element := range list {
			holds, err := f.holds(e, element)
			if err != nil {
				return nil, err
			}
			if holds {
				out = append(out, element)
			}
		}
		if err := e.checkLimit(len(out)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (f filter) holds(e *evaluation, element any) (bool, error) {
	left, err := e.applyAll(f.left, []any{element})
	if f.operator == "" {
		if errors.Is(err, errTooManyValues) {
			return false, err
		}
		return len(left) > 0, nil
	}
	if err != nil || len(left) == 0 {
		return false, err
	}
	if len(left) > 1 {
		return false, errSeveral
	}
	right, err := e.applyAll(f.right, []any{element})
	if err != nil || len(right) == 0 {
		return false, err
	}
	if len(right) > 1 {
		return false, errSeveral
	}
	return compare(left[0], f.operator, right[0])
}

var (
	errSeveral       = errors.New("can only compare one element at a time")
	errTooManyValues = fmt.Errorf("the template selects more than %d values", maxValues)
)

func (l literal) apply(_ *evaluation, input []any) ([]any, error) {
	return slices.Repeat([]any{l.value}, len(input)), nil
}

func (t literalText) apply(*evaluation, []any) ([]any, error) { return []any{string(t)}, nil }
