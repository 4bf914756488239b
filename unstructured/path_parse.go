package unstructured

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ParsePath parses a path in the form used by errors of this package and typed by people. It returns the steps for [Get], [Set]
// and [Delete]:
//
//	.spec.containers[0].image
//	spec.containers[name=app].image
//	metadata.annotations["example.com/owner"]
//	{.metadata.labels.app\.kubernetes\.io/name}
//
// The first dot is optional, "." is the whole object, and braces may surround the path as for kubectl's jsonpath. A name with
// special characters is written in brackets and quotes (single quotes, or double quotes as in Go and JSON), or with backslashes
// before the special characters. [*] is the wildcard of [GetAll]; Get, Set and Delete reject it. Slices, filters and negative
// indexes are rejected: package jsonpath has them. A parse error contains the byte offset, counted from 0.
func ParsePath(text string) ([]string, error) {
	p := pathParser{text: text, end: len(text)}
	if strings.HasPrefix(text, "{") {
		if !strings.HasSuffix(text, "}") {
			return nil, p.unexpected("is without its }")
		}
		p.pos = 1
		p.end = len(text) - 1
	}
	if p.rest() == "." {
		return nil, nil
	}
	var fields []string
	for p.rest() != "" || len(fields) == 0 {
		field, err := p.step(len(fields) == 0)
		if err != nil {
			return nil, err
		}
		fields = append(fields, field)
	}
	return fields, nil
}

// pathParser parses a path's text from pos to end.
type pathParser struct {
	text     string
	pos, end int
}

func (p *pathParser) rest() string { return p.text[p.pos:p.end] }

func (p *pathParser) accept(c byte) bool {
	if rest := p.rest(); rest == "" || rest[0] != c {
		return false
	}
	p.pos++
	return true
}

func (p *pathParser) unexpected(what string) error {
	found := "the end"
	if rest := p.rest(); rest != "" {
		_, size := utf8.DecodeRuneInString(rest)
		found = strconv.Quote(rest[:size])
	}
	return fmt.Errorf("path %q: byte %d: %s %s", p.text, p.pos, found, what)
}

func (p *pathParser) step(first bool) (string, error) {
	if p.accept('[') {
		return p.bracket()
	}
	if !p.accept('.') && !first {
		return "", p.unexpected("is where a step should begin with . or [")
	}
	return p.name()
}

// name parses a field name behind its dot.
func (p *pathParser) name() (string, error) {
	var b strings.Builder
	for begin := p.pos; ; {
		rest := p.rest()
		c, size := utf8.DecodeRuneInString(rest)
		switch {
		case rest == "" || c == '.' || c == '[':
			if p.pos == begin {
				return "", p.unexpected("is where a field's name should be")
			}
			return b.String(), nil
		case c == '\\' && len(rest) > 1:
			p.pos++
			rest = p.rest()
			_, size = utf8.DecodeRuneInString(rest)
		case strings.ContainsRune(`]{}()"'\*?@,`, c) || unicode.IsSpace(c) || unicode.IsControl(c):
			return "", p.unexpected(`is in a field's name; write ["name"] if that is meant`)
		}
		b.WriteString(rest[:size])
		p.pos += size
	}
}

// bracket parses a step behind its [, including the ]: an index, a name in quotes, or a by-key step.
func (p *pathParser) bracket() (string, error) {
	begin := p.pos
	rest := p.rest()
	switch n := len(rest) - len(strings.TrimLeft(rest, digits)); {
	case strings.HasPrefix(rest, "*]"):
		p.pos += len("*]")
		return wildcard, nil
	case n > 0 && strings.HasPrefix(rest[n:], "]"):
		p.pos += n + len("]")
		return rest[:n], nil
	case strings.HasPrefix(rest, "'"):
		name, err := p.singleQuoted()
		if err == nil && !p.accept(']') {
			err = p.unexpected("is where ] should be")
		}
		return name, err
	case strings.HasPrefix(rest, `"`):
		name, err := p.quoted()
		if err != nil {
			return "", err
		}
		if p.accept(']') {
			return name, nil
		}
		p.pos = begin
	case rest != "" && strings.Contains("*?-:]", rest[:1]):
		return "", p.unexpected(`is no index, ["name"] or [key=value]`)
	}
	if _, err := p.keys(); err != nil {
		return "", err
	}
	return p.text[begin-len("[") : p.pos], nil
}

func (p *pathParser) quoted() (string, error) {
	prefix, err := strconv.QuotedPrefix(p.rest())
	if err != nil {
		return "", p.unexpected("begins a text whose quotes do not end or that has an unknown escape sequence")
	}
	text, _ := strconv.Unquote(prefix) // QuotedPrefix has validated it
	p.pos += len(prefix)
	return text, nil
}

// singleQuoted parses a text in single quotes. A backslash escapes the next character.
func (p *pathParser) singleQuoted() (string, error) {
	var b strings.Builder
	rest := p.rest()
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '\'':
			p.pos += i + 1
			return b.String(), nil
		case c == '\\' && i+1 < len(rest):
			i++
			b.WriteByte(rest[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", p.unexpected("begins a text whose quotes do not end")
}
