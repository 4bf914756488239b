package unstructured

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ParsePath reads a path as the errors of this package write it and as people type it, and returns its steps for
// [Get], [Set] and [Delete]:
//
//	.spec.containers[0].image
//	spec.containers[name=app].image
//	metadata.annotations["example.com/owner"]
//	{.metadata.labels.app\.kubernetes\.io/name}
//
// The first dot may be missing, "." is the whole object, and braces may be around it as for kubectl's jsonpath. A
// name that holds what means something in a path stands in brackets and quotes (single ones, or double ones as Go
// and JSON have them), or has backslashes before it. Wildcards, slices, filters and negative indexes select more than
// one value or depend on a length, and are refused. An error says at which byte, counted from 0, the text cannot be
// read.
func ParsePath(text string) ([]string, error) {
	p := pathReader{text: text, end: len(text)}
	if strings.HasPrefix(text, "{") {
		if !strings.HasSuffix(text, "}") {
			return nil, p.wrong("is without its }")
		}
		p.pos, p.end = 1, len(text)-1
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

// pathReader reads a path's text from pos to end.
type pathReader struct {
	text     string
	pos, end int
}

func (p *pathReader) rest() string { return p.text[p.pos:p.end] }

func (p *pathReader) take(c byte) bool {
	if rest := p.rest(); rest == "" || rest[0] != c {
		return false
	}
	p.pos++
	return true
}

// wrong says that what stands at pos is what it says.
func (p *pathReader) wrong(what string) error {
	found := "the end"
	if rest := p.rest(); rest != "" {
		_, size := utf8.DecodeRuneInString(rest)
		found = strconv.Quote(rest[:size])
	}
	return fmt.Errorf("path %q: byte %d: %s %s", p.text, p.pos, found, what)
}

// step reads one step of the path.
func (p *pathReader) step(first bool) (string, error) {
	if p.take('[') {
		return p.bracket()
	}
	if !p.take('.') && !first {
		return "", p.wrong("is where a step should begin with . or [")
	}
	return p.name()
}

// name reads a field's name behind its dot.
func (p *pathReader) name() (string, error) {
	var b strings.Builder
	for begin := p.pos; ; {
		rest := p.rest()
		c, size := utf8.DecodeRuneInString(rest)
		switch {
		case rest == "" || c == '.' || c == '[':
			if p.pos == begin {
				return "", p.wrong("is where a field's name should be")
			}
			return b.String(), nil
		case c == '\\' && len(rest) > 1:
			p.pos++
			rest = p.rest()
			_, size = utf8.DecodeRuneInString(rest)
		case strings.ContainsRune(`]{}()"'\*?@,`, c) || unicode.IsSpace(c) || unicode.IsControl(c):
			return "", p.wrong(`is in a field's name; write ["name"] if that is meant`)
		}
		b.WriteString(rest[:size])
		p.pos += size
	}
}

// bracket reads a step behind its [, with its ]: an index, a name in quotes, or a by-key step.
func (p *pathReader) bracket() (string, error) {
	begin := p.pos
	rest := p.rest()
	switch digits := countDigits([]byte(rest)); {
	case digits > 0 && strings.HasPrefix(rest[digits:], "]"):
		p.pos += digits + len("]")
		return rest[:digits], nil
	case strings.HasPrefix(rest, "'"):
		name, err := p.singleQuoted()
		if err == nil && !p.take(']') {
			err = p.wrong("is where ] should be")
		}
		return name, err
	case strings.HasPrefix(rest, `"`):
		name, err := p.quoted()
		if err != nil {
			return "", err
		}
		if p.take(']') {
			return name, nil
		}
		p.pos = begin
	case rest != "" && strings.Contains("*?-:]", rest[:1]):
		return "", p.wrong(`is no index, ["name"] or [key=value]`)
	}
	if _, err := p.keys(); err != nil {
		return "", err
	}
	return p.text[begin-len("[") : p.pos], nil
}

// quoted reads a text in double quotes.
func (p *pathReader) quoted() (string, error) {
	prefix, err := strconv.QuotedPrefix(p.rest())
	if err != nil {
		return "", p.wrong("begins a text whose quotes do not end or that has an unknown escape sequence")
	}
	text, err := strconv.Unquote(prefix)
	if err != nil {
		return "", p.wrong("begins a text with an unknown escape sequence")
	}
	p.pos += len(prefix)
	return text, nil
}

// singleQuoted reads a text in single quotes, where a backslash keeps what follows.
func (p *pathReader) singleQuoted() (string, error) {
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
	return "", p.wrong("begins a text whose quotes do not end")
}
