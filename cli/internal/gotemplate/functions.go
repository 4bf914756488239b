package gotemplate

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"text/template/parse"
	"unicode"
	"unicode/utf8"
)

// function is a function of templates.
type function struct {
	fixed      int // number of arguments before the variadic ones
	isVariadic bool
	takesText  bool // its only argument is a string
	call       func(args []value) (value, error)
}

// builtins are the functions of text/template. "and" and "or" are evaluated by call.
var builtins = map[string]function{
	"and":      {fixed: 1, isVariadic: true},
	"or":       {fixed: 1, isVariadic: true},
	"call":     {fixed: 1, isVariadic: true},
	"not":      {fixed: 1, call: func(args []value) (value, error) { return concrete(!args[0].isTrue()), nil }},
	"len":      {fixed: 1, call: length},
	"index":    {fixed: 1, isVariadic: true, call: index},
	"slice":    {fixed: 1, isVariadic: true, call: slice},
	"print":    formats(fmt.Sprint),
	"println":  formats(fmt.Sprintln),
	"printf":   {fixed: 1, isVariadic: true, takesText: true, call: printf},
	"html":     formats(func(args ...any) string { return htmlEscaper.Replace(textOf(args)) }),
	"js":       formats(func(args ...any) string { return escapeJS(textOf(args)) }),
	"urlquery": formats(func(args ...any) string { return url.QueryEscape(textOf(args)) }),
	"eq":       {fixed: 1, isVariadic: true, call: func(args []value) (value, error) { return boolean(equal(args[0], args[1:]...)) }},
	"ne":       {fixed: 2, call: func(args []value) (value, error) { return negation(equal(args[0], args[1])) }},
	"lt":       {fixed: 2, call: func(args []value) (value, error) { return boolean(isLess(args[0], args[1])) }},
	"le":       {fixed: 2, call: func(args []value) (value, error) { return boolean(isLessOrEqual(args[0], args[1])) }},
	"gt":       {fixed: 2, call: func(args []value) (value, error) { return negation(isLessOrEqual(args[0], args[1])) }},
	"ge":       {fixed: 2, call: func(args []value) (value, error) { return negation(isLess(args[0], args[1])) }},
}

func boolean(result bool, err error) (value, error) { return concrete(result), err }

func negation(result bool, err error) (value, error) { return concrete(!result), err }

func formats(format func(args ...any) string) function {
	return function{isVariadic: true, call: func(args []value) (value, error) { return concrete(format(anyOf(args)...)), nil }}
}

func printf(args []value) (value, error) {
	all := anyOf(args)
	format, _ := all[0].(string)
	return concrete(fmt.Sprintf(format, all[1:]...)), nil
}

func ofString(call func(string) (string, error)) function {
	return function{fixed: 1, takesText: true, call: func(args []value) (value, error) {
		text, _ := args[0].data.(string)
		result, err := call(text)
		return concrete(result), err
	}}
}

func anyOf(args []value) []any {
	all := make([]any, 0, len(args))
	for _, arg := range args {
		all = append(all, arg.data)
	}
	return all
}

// call calls a function. node is for its errors. args[0] is the function itself, unless args is nil.
func (e *execution) call(dot value, name string, node parse.Node, args []parse.Node, last *value) (value, error) {
	f := e.template.functions[name]
	if args != nil {
		args = args[1:]
	}
	count := len(args)
	if last != nil {
		count++
	}
	switch {
	case f.isVariadic && count < f.fixed:
		return value{}, e.errorf("wrong number of args for %s: want at least %d got %d", name, f.fixed, len(args))
	case !f.isVariadic && count != f.fixed:
		return value{}, e.errorf("wrong number of args for %s: want %d got %d", name, f.fixed, count)
	case name == "and" || name == "or":
		return e.firstDecisive(dot, name == "or", args, last)
	}
	values := make([]value, 0, count)
	for i, arg := range args {
		evaluate := e.argument
		if f.takesText && i == 0 {
			evaluate = e.text
		}
		v, err := evaluate(dot, arg)
		if err != nil {
			return value{}, err
		}
		values = append(values, v)
	}
	if last != nil {
		if f.takesText && len(values) == 0 {
			if err := e.checkText(*last); err != nil {
				return value{}, err
			}
		}
		values = append(values, *last)
	}
	if name == "call" {
		f.call = callOf(args)
	}
	result, err := f.call(values)
	if err != nil {
		e.node = node
		return value{}, e.errorf("error calling %s: %w", name, err)
	}
	return result, nil
}

// firstDecisive returns the first value of "and" or "or" that decides the result, or the last value. Further arguments are not
// evaluated.
func (e *execution) firstDecisive(dot value, decisive bool, args []parse.Node, last *value) (v value, err error) {
	for _, arg := range args {
		if v, err = e.argument(dot, arg); err != nil || v.isTrue() == decisive {
			return v, err
		}
	}
	if last != nil {
		v = *last
	}
	return v, nil
}

// callOf returns the function "call", which fails: decoded JSON has no functions.
func callOf(args []parse.Node) func([]value) (value, error) {
	return func(values []value) (value, error) {
		callee := values[0].unbox()
		name, isText := callee.data.(string)
		switch {
		case !callee.isValid:
			return value{}, errors.New("call of nil")
		case len(args) > 0:
			name = args[0].String()
		case !isText:
			name = "<" + callee.typeName() + " Value>"
		}
		return value{}, fmt.Errorf("non-function %s of type %s", name, callee.typeName())
	}
}

var errZeroValue = errors.New("reflect: call of reflect.Value.Type on zero Value")

func length(args []value) (value, error) {
	switch data := args[0].data.(type) {
	case string:
		return concrete(len(data)), nil
	case []any:
		return concrete(len(data)), nil
	case map[string]any:
		return concrete(len(data)), nil
	case nil:
		if args[0].isValid {
			return value{}, errors.New("len of nil pointer")
		}
		return value{}, errZeroValue
	default:
		return value{}, fmt.Errorf("len of type %T", data)
	}
}

// index returns args[0][args[1]][args[2]]...
func index(args []value) (value, error) {
	item := args[0].unbox()
	if !item.isValid {
		return value{}, errors.New("index of untyped nil")
	}
	for _, at := range args[1:] {
		at = at.unbox()
		switch data := item.data.(type) {
		case nil:
			return value{}, errors.New("index of nil pointer")
		case map[string]any:
			key, isText := at.data.(string)
			if !at.isValid {
				return value{}, errors.New("value is nil; should be of type string")
			}
			if !isText {
				return value{}, fmt.Errorf("value has type %T; should be string", at.data)
			}
			item = boxed(data[key])
		case []any:
			i, err := position(at, len(data))
			if err == nil && i == len(data) {
				err = errors.New("reflect: slice index out of range")
			}
			if err != nil {
				return value{}, err
			}
			item = boxed(data[i])
		case string:
			i, err := position(at, len(data))
			if err == nil && i == len(data) {
				err = errors.New("reflect: string index out of range")
			}
			if err != nil {
				return value{}, err
			}
			item = concrete(data[i])
		default:
			return value{}, fmt.Errorf("can't index item of type %T", data)
		}
	}
	return item, nil
}

// position returns the index that a value is, between 0 and limit.
func position(v value, limit int) (int, error) {
	n := numberOf(v.data)
	switch {
	case !v.isValid:
		return 0, errors.New("cannot index slice/array with nil")
	case v.isBoxed || n.kind != intKind && n.kind != uintKind:
		return 0, fmt.Errorf("cannot index slice/array with type %s", v.typeName())
	}
	i := n.integer + int64(n.unsigned) //nolint:gosec // a byte
	if i < 0 || i > int64(limit) {
		return 0, fmt.Errorf("index out of range: %d", i)
	}
	return int(i), nil
}

// slice returns args[0][args[1]:args[2]:args[3]].
func slice(args []value) (value, error) {
	item := args[0].unbox()
	bounds := args[1:]
	text, isText := item.data.(string)
	list, isList := item.data.([]any)
	switch {
	case !item.isValid:
		return value{}, errors.New("slice of untyped nil")
	case len(bounds) > 3:
		return value{}, fmt.Errorf("too many slice indexes: %d", len(bounds))
	case isText && len(bounds) == 3:
		return value{}, errors.New("cannot 3-index slice a string")
	case !isText && !isList:
		return value{}, fmt.Errorf("can't slice item of type %T", item.data)
	}
	limit := len(text) + cap(list)
	at := [3]int{0, len(text) + len(list), limit}
	for i, bound := range bounds {
		x, err := position(bound, limit)
		if err != nil {
			return value{}, err
		}
		at[i] = x
	}
	switch {
	case at[0] > at[1]:
		return value{}, fmt.Errorf("invalid slice index: %d > %d", at[0], at[1])
	case at[1] > at[2]:
		return value{}, fmt.Errorf("invalid slice index: %d > %d", at[1], at[2])
	case isText:
		return concrete(text[at[0]:at[1]]), nil
	default:
		return concrete(list[at[0]:at[1]:at[2]]), nil
	}
}

// textOf returns the text of arguments, as an action prints them.
func textOf(args []any) string {
	if len(args) == 1 {
		if text, isText := args[0].(string); isText {
			return text
		}
	}
	for i, arg := range args {
		if arg == nil {
			args[i] = "<no value>"
		}
	}
	return fmt.Sprint(args...)
}

var htmlEscaper = strings.NewReplacer("\x00", "\uFFFD", `"`, "&#34;", "'", "&#39;", "&", "&amp;", "<", "&lt;", ">", "&gt;")

// escapeJS returns text for a JavaScript string.
func escapeJS(text string) string {
	var escaped strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case strings.ContainsRune(`\'"`, r):
			escaped.WriteString(`\` + text[i:i+size])
		case r < ' ' || strings.ContainsRune("<>&=", r):
			fmt.Fprintf(&escaped, `\u%04X`, r)
		case r < utf8.RuneSelf || unicode.IsPrint(r):
			escaped.WriteString(text[i : i+size])
		default:
			fmt.Fprintf(&escaped, `\u%04X`, r)
		}
		i += size
	}
	return escaped.String()
}
