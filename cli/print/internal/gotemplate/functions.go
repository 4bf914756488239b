package gotemplate

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsMissing reports whether an argument of a function is a missing field.
func IsMissing(value any) bool { return value == (noValue{}) }

// isTrue reports whether a value is not empty, zero or missing.
func isTrue(value any) bool {
	switch value := value.(type) {
	case nil, noValue:
		return false
	case bool:
		return value
	case string:
		return value != ""
	case int64:
		return value != 0
	case float64:
		return value != 0
	case []any:
		return len(value) > 0
	case map[string]any:
		return len(value) > 0
	}
	return true
}

// toText formats a value for the output of an action.
func toText(value any) string {
	switch value.(type) {
	case nil, noValue:
		return "<no value>"
	}
	return fmt.Sprint(value)
}

// printable replaces missing fields by nil for fmt.
func printable(args []any) []any {
	shown := make([]any, len(args))
	for i, arg := range args {
		if shown[i] = arg; arg == (noValue{}) {
			shown[i] = nil
		}
	}
	return shown
}

func builtins() map[string]Function {
	functions := map[string]Function{
		"not":   one("not", func(value any) (any, error) { return !isTrue(value), nil }),
		"len":   one("len", length),
		"index": index, "slice": slice,
		"call":    func([]any) (any, error) { return nil, errors.New("non-function of a JSON value") },
		"print":   func(args []any) (any, error) { return fmt.Sprint(printable(args)...), nil },
		"println": func(args []any) (any, error) { return fmt.Sprintln(printable(args)...), nil },
		"printf": func(args []any) (any, error) {
			if len(args) == 0 {
				return nil, errors.New("wrong number of args for printf: want at least 1 got 0")
			}
			format, ok := args[0].(string)
			if !ok {
				return nil, fmt.Errorf("wrong type for value; expected string; got %s", typeName(args[0]))
			}
			return fmt.Sprintf(format, printable(args[1:])...), nil
		},
		"html":     escaper(htmlEscaper().Replace),
		"js":       escaper(escapeJS),
		"urlquery": escaper(url.QueryEscape),
	}
	for name, compare := range comparisons() {
		functions[name] = compare
	}
	return functions
}

// one adapts a function of a single argument.
func one(name string, function func(any) (any, error)) Function {
	return func(args []any) (any, error) {
		if len(args) != 1 {
			return nil, fmt.Errorf("wrong number of args for %s: want 1 got %d", name, len(args))
		}
		return function(args[0])
	}
}

func length(value any) (any, error) {
	switch value := value.(type) {
	case string:
		return int64(len(value)), nil
	case []any:
		return int64(len(value)), nil
	case map[string]any:
		return int64(len(value)), nil
	case nil, noValue:
		return nil, errors.New("len of nil pointer")
	}
	return nil, fmt.Errorf("len of type %s", typeName(value))
}

func index(args []any) (any, error) {
	if len(args) == 0 {
		return nil, errors.New("wrong number of args for index: want at least 1 got 0")
	}
	value := args[0]
	for _, key := range args[1:] {
		switch container := value.(type) {
		case map[string]any:
			name, ok := key.(string)
			if !ok {
				return nil, fmt.Errorf("value has type %s; should be string", typeName(key))
			}
			value = container[name]
		case []any:
			at, err := position(key, len(container))
			if err != nil {
				return nil, err
			}
			value = container[at]
		case string:
			at, err := position(key, len(container))
			if err != nil {
				return nil, err
			}
			value = int64(container[at])
		case nil, noValue:
			return nil, errors.New("index of nil pointer")
		default:
			return nil, fmt.Errorf("can't index item of type %s", typeName(value))
		}
	}
	return value, nil
}

func position(key any, length int) (int, error) {
	at, ok := key.(int64)
	switch {
	case key == nil:
		return 0, errors.New("cannot index slice/array with nil")
	case !ok:
		return 0, fmt.Errorf("cannot index slice/array with type %s", typeName(key))
	case at < 0 || at >= int64(length):
		return 0, fmt.Errorf("index out of range: %d", at)
	}
	return int(at), nil
}

func slice(args []any) (any, error) {
	if len(args) == 0 {
		return nil, errors.New("wrong number of args for slice: want at least 1 got 0")
	}
	var size int
	limit := 3
	switch value := args[0].(type) {
	case string:
		size = len(value)
		limit = 2
	case []any:
		size = len(value)
	default:
		return nil, fmt.Errorf("can't slice item of type %s", typeName(value))
	}
	if len(args)-1 > limit {
		return nil, fmt.Errorf("too many slice indexes: %d", len(args)-1)
	}
	bounds := []int{0, size, size}
	for i, arg := range args[1:] {
		at, err := position(arg, size+1)
		if err != nil {
			return nil, err
		}
		bounds[i] = at
	}
	if bounds[0] > bounds[1] || bounds[1] > bounds[2] {
		return nil, fmt.Errorf("invalid slice index: %d > %d", bounds[0], bounds[1])
	}
	if text, ok := args[0].(string); ok {
		return text[bounds[0]:bounds[1]], nil
	}
	return args[0].([]any)[bounds[0]:bounds[1]], nil //nolint:forcetypeassert // checked above
}

// escaper returns a function to print and then escape its arguments.
func escaper(escape func(string) string) Function {
	return func(args []any) (any, error) { return escape(fmt.Sprint(printable(args)...)), nil }
}

func htmlEscaper() *strings.Replacer {
	return strings.NewReplacer("\x00", "\uFFFD", `"`, "&#34;", "'", "&#39;", "&", "&amp;", "<", "&lt;", ">", "&gt;")
}

// escapeJS escapes a text for a string of JavaScript.
func escapeJS(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		char, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case strings.ContainsRune(`\'"`, char):
			out.WriteString(`\` + string(char))
		case strings.ContainsRune("<>&=", char), char < ' ':
			fmt.Fprintf(&out, `\u%04X`, char)
		case char >= utf8.RuneSelf && !unicode.IsPrint(char):
			fmt.Fprintf(&out, `\u%04X`, char)
		default:
			out.WriteString(text[i : i+size])
		}
		i += size
	}
	return out.String()
}

func comparisons() map[string]Function {
	two := func(name string, function func(a, b any) (bool, error)) Function {
		return func(args []any) (any, error) {
			if len(args) != 2 {
				return nil, errors.New("wrong number of args for " + name + ": want 2 got " + strconv.Itoa(len(args)))
			}
			return function(args[0], args[1])
		}
	}
	return map[string]Function{
		"eq": func(args []any) (any, error) {
			if len(args) < 2 {
				return nil, errors.New("missing argument for comparison")
			}
			for _, arg := range args[1:] {
				if same, err := equal(args[0], arg); err != nil || same {
					return same, err
				}
			}
			return false, nil
		},
		"ne": two("ne", func(a, b any) (bool, error) {
			same, err := equal(a, b)
			return !same, err
		}),
		"lt": two("lt", less),
		"le": two("le", func(a, b any) (bool, error) {
			if isLess, err := less(a, b); err != nil || isLess {
				return isLess, err
			}
			return equal(a, b)
		}),
		"gt": two("gt", func(a, b any) (bool, error) { return lessOrEqual(a, b, true) }),
		"ge": two("ge", func(a, b any) (bool, error) { return lessOrEqual(a, b, false) }),
	}
}

// lessOrEqual returns !(a <= b) with orEqual, and !(a < b) without.
func lessOrEqual(a, b any, orEqual bool) (bool, error) {
	isLess, err := less(a, b)
	if err != nil || isLess {
		return false, err
	}
	if !orEqual {
		return true, nil
	}
	same, err := equal(a, b)
	return !same, err
}

var (
	errIncompatible = errors.New("incompatible types for comparison")
	errNoOrder      = errors.New("invalid type for comparison")
)

func equal(a, b any) (bool, error) {
	if a == (noValue{}) {
		a = nil
	}
	if b == (noValue{}) {
		b = nil
	}
	if a == nil || b == nil {
		return a == nil && b == nil, nil
	}
	switch a := a.(type) {
	case []any, map[string]any:
		return false, fmt.Errorf("non-comparable type %v: %s", a, typeName(a))
	case bool, string, int64, float64:
		switch b.(type) {
		case []any, map[string]any:
			return false, errIncompatible
		}
		if fmt.Sprintf("%T", a) != fmt.Sprintf("%T", b) {
			return false, errIncompatible
		}
		return a == b, nil
	}
	return false, errNoOrder
}

func less(a, b any) (bool, error) {
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			return a < b, nil
		}
	case int64:
		if b, ok := b.(int64); ok {
			return a < b, nil
		}
	case float64:
		if b, ok := b.(float64); ok {
			return a < b, nil
		}
	default:
		return false, errNoOrder
	}
	return false, errIncompatible
}
