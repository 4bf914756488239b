package jsonpath

import (
	"strconv"
	"strings"
)

// bracket parses indexes, slices, names and unions of them in brackets.
func (p *templateParser) bracket() ([]step, error) {
	begin := p.pos
	end := strings.IndexAny(p.rest(), "]\n")
	if end < 0 || p.rest()[end] == '\n' {
		return nil, p.errorf(begin, "a [ without its ]")
	}
	p.pos += end + len("]")
	content := p.text[begin+len("[") : p.pos-len("]")]
	if !strings.Contains(content, ",") {
		return p.subscript(begin+len("["), content)
	}
	var alternatives union
	at := begin + len("[")
	for text := range strings.SplitSeq(content, ",") {
		steps, err := p.subscript(at+len(text)-len(strings.TrimLeft(text, " ")), strings.Trim(text, " "))
		if err != nil {
			return nil, err
		}
		alternatives = append(alternatives, steps)
		at += len(text) + len(",")
	}
	return []step{alternatives}, nil
}

// subscript parses an alternative in brackets. text begins at byte at.
func (p *templateParser) subscript(at int, text string) ([]step, error) {
	if text == "*" {
		return []step{slice{step: 1}}, nil
	}
	if len(text) >= 2 && text[0] == '\'' && strings.IndexByte(text[1:], '\'') == len(text)-2 {
		// Like kubectl, a name in quotes is a path: its dots need a backslash.
		name := p.part(at+1, at+len(text)-1)
		first := name.field()
		more, err := name.steps()
		return append([]step{first}, more...), err
	}
	parts := strings.Split(text, ":")
	if len(parts) > 3 {
		return nil, p.errorf(at, "%q is no index, slice or name in single quotes", text)
	}
	numbers := make([]*int, 3)
	for i, part := range parts {
		if strings.Trim(strings.TrimPrefix(part, "-"), "0123456789") != "" {
			return nil, p.errorf(at, "%q is no index, slice or name in single quotes", text)
		}
		if part == "" {
			continue
		}
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, p.errorf(at, "%q is no index", part)
		}
		numbers[i] = &n
	}
	start := 0
	if numbers[0] != nil {
		start = *numbers[0]
	}
	if len(parts) == 1 {
		return []step{index(start)}, nil
	}
	s := slice{start: start, end: numbers[1], step: 1}
	if numbers[2] != nil {
		if s.step = *numbers[2]; s.step <= 0 {
			return nil, p.errorf(at, "the step of a slice is %d, not above 0", s.step)
		}
	}
	return []step{s}, nil
}

const operatorChars = "!<>="

// filter parses [?(left operator right)] or [?(left)].
func (p *templateParser) filter() ([]step, error) {
	open := p.pos
	begin := open + len("[?(")
	end := begin
	operatorAt := -1
	for ; end < len(p.text) && p.text[end] != ')'; end++ {
		switch c := p.text[end]; {
		case c == '\n':
			return nil, p.errorf(open, "a filter without its )]")
		case c == '"' || c == '\'':
			closed := endOfQuoted(p.text, end)
			if closed < 0 {
				return nil, p.errorf(end, "a text without its closing quote")
			}
			end = closed - 1
		case operatorAt < 0 && strings.IndexByte(operatorChars, c) >= 0:
			operatorAt = end
		}
	}
	if !strings.HasPrefix(p.text[end:], ")]") {
		return nil, p.errorf(open, "a filter without its )]")
	}
	p.pos = end + len(")]")
	if operatorAt < 0 {
		left, err := p.part(begin, end).steps()
		return []step{filter{left: left}}, err
	}
	rightAt := operatorAt
	for strings.IndexByte(operatorChars, p.text[rightAt]) >= 0 {
		rightAt++
	}
	operator := p.text[operatorAt:rightAt]
	switch operator {
	case "==", "!=", "<", "<=", ">", ">=":
	default:
		return nil, p.errorf(operatorAt, "%q is no operator (==, !=, <, <=, > and >= are)", operator)
	}
	if strings.Trim(p.text[begin:operatorAt], " ") == "" || strings.Trim(p.text[rightAt:end], " ") == "" {
		return nil, p.errorf(operatorAt, "%s has nothing to compare on one side", operator)
	}
	left, err := p.part(begin, operatorAt).steps()
	if err != nil {
		return nil, err
	}
	right, err := p.part(rightAt, end).steps()
	return []step{filter{left: left, operator: operator, right: right}}, err
}
