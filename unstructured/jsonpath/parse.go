package jsonpath

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/anykind/anykind/internal/sanitize"
)

// node is a part of a template: text, an action, or a range.
type node struct {
	text    string
	steps   []step // of an action or a range
	isRange bool
	body    []node // of a range
}

// templateParser parses text from pos on. A part of a template, such as each side of a filter, has a parser of its own: base is
// the part's offset in the template.
type templateParser struct {
	text      string
	pos, base int
	isPart    bool
}

// maxShown is how much of the template an error shows, in bytes.
const maxShown = 200

func (p *templateParser) errorf(pos int, format string, args ...any) error {
	return fmt.Errorf("jsonpath: byte %d: %s", p.base+pos, sanitize.Text(fmt.Sprintf(format, args...), maxShown))
}

func (p *templateParser) rest() string { return p.text[p.pos:] }

func (p *templateParser) part(start, end int) *templateParser {
	return &templateParser{text: p.text[start:end], base: p.base + start, isPart: true}
}

// nodes parses a template to its end. For depth > 0 it parses the body of the innermost range and its {end}. rangeAt is the
// offset of this range.
func (p *templateParser) nodes(depth, rangeAt int) ([]node, error) {
	var nodes []node
	for p.pos < len(p.text) {
		begin := p.pos
		if text, _, _ := strings.Cut(p.rest(), "{"); text != "" {
			nodes = append(nodes, node{text: text})
			p.pos += len(text)
			continue
		}
		p.pos += len("{")
		keyword := p.keyword()
		steps, err := p.steps()
		if err != nil {
			return nil, err
		}
		n := node{steps: steps, isRange: keyword == "range"}
		switch {
		case n.isRange && depth == maxRanges:
			return nil, p.errorf(begin, "more than %d ranges in each other", maxRanges)
		case n.isRange:
			if n.body, err = p.nodes(depth+1, begin); err != nil {
				return nil, err
			}
		case keyword == "end" && depth == 0:
			return nil, p.errorf(begin, "{end} without a {range}")
		case keyword == "end" && len(steps) > 0:
			return nil, p.errorf(begin, "{end} has nothing else in its braces")
		case keyword == "end":
			return nodes, nil
		}
		nodes = append(nodes, n)
	}
	if depth > 0 {
		return nil, p.errorf(rangeAt, "{range} without its {end}")
	}
	return nodes, nil
}

// keyword consumes range or end, if the action begins with it.
func (p *templateParser) keyword() string {
	rest := strings.TrimLeft(p.rest(), " ")
	end := strings.IndexFunc(rest, isTerminator)
	if end < 0 || rest[:end] != "range" && rest[:end] != "end" {
		return ""
	}
	p.pos = len(p.text) - len(rest) + end
	return rest[:end]
}

// steps parses the steps of an action behind its {, with its }, or a whole part.
func (p *templateParser) steps() ([]step, error) {
	var steps []step
	for {
		rest := p.rest()
		c, size := utf8.DecodeRuneInString(rest)
		switch {
		case rest == "" && p.isPart:
			return steps, nil
		case rest == "" || c == '\n' || c == '\r':
			return nil, p.errorf(p.pos, "an action without its }")
		case c == '}' && !p.isPart:
			p.pos++
			return steps, nil
		case c == ' ' || c == '@' || c == '$': // the current value
			p.pos++
			continue
		}
		next, err := p.step(rest, c, size, steps)
		if err != nil {
			return nil, err
		}
		steps = append(steps, next...)
	}
}

// step parses a step beginning with c.
func (p *templateParser) step(rest string, c rune, size int, before []step) ([]step, error) {
	switch {
	case strings.HasPrefix(rest, "[?("):
		return p.filter()
	case strings.HasPrefix(rest, ".."):
		if len(before) > 0 {
			if _, again := before[len(before)-1].(descendants); again {
				return nil, p.errorf(p.pos, ".. behind ..")
			}
		}
		p.pos += len("..")
		if c, _ := utf8.DecodeRuneInString(p.rest()); isWordRune(c) {
			return []step{descendants{}, p.field()}, nil
		}
		return []step{descendants{}}, nil
	case c == '[':
		return p.bracket()
	case c == '"' || c == '\'':
		return p.quoted(byte(c))
	case c == '.':
		p.pos++
		return []step{p.field()}, nil
	case c == '+' || c == '-' || '0' <= c && c <= '9':
		return p.number()
	case isWordRune(c):
		return p.word()
	default:
		return nil, p.errorf(p.pos, "%q is no part of an action", rest[:size])
	}
}

// isTerminator reports whether c ends a name.
func isTerminator(c rune) bool { return strings.ContainsRune(" \t\r\n.,[]$@{}", c) }

func isWordRune(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) }

// field parses a field's name behind its dot.
func (p *templateParser) field() step {
	var name strings.Builder
	begin := p.pos
	for p.pos < len(p.text) {
		c, size := utf8.DecodeRuneInString(p.rest())
		if c == '\\' {
			p.pos++
			_, size = utf8.DecodeRuneInString(p.rest())
		} else if isTerminator(c) {
			break
		}
		name.WriteString(p.text[p.pos : p.pos+size])
		p.pos += size
	}
	if p.text[begin:p.pos] == "*" {
		return wildcard{}
	}
	return field(name.String())
}

func (p *templateParser) number() ([]step, error) {
	begin := p.pos
	p.pos++ // the sign or a digit
	p.pos += len(p.rest()) - len(strings.TrimLeft(p.rest(), "0123456789."))
	text := p.text[begin:p.pos]
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return []step{literal{n}}, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, p.errorf(begin, "%q is no number", text)
	}
	return []step{literal{f}}, nil
}

// word parses true or false. Keywords have been parsed.
func (p *templateParser) word() ([]step, error) {
	rest := p.rest()
	end := strings.IndexFunc(rest, isTerminator)
	if end < 0 {
		end = len(rest)
	}
	switch word := rest[:end]; word {
	case "true", "false":
		p.pos += end
		return []step{literal{word == "true"}}, nil
	case "range", "end":
		return nil, p.errorf(p.pos, "%s is not at the beginning of its action", word)
	default:
		return nil, p.errorf(p.pos, "%q is not known: a field begins with a dot, a text with a quote", word)
	}
}

func (p *templateParser) quoted(quote byte) ([]step, error) {
	begin := p.pos
	end := endOfQuoted(p.text, begin)
	if end < 0 {
		return nil, p.errorf(begin, "a text without its closing quote")
	}
	p.pos = end
	var text strings.Builder
	for rest := p.text[begin+1 : end-1]; rest != ""; {
		c, isMultibyte, tail, err := strconv.UnquoteChar(rest, quote)
		if err != nil {
			return nil, p.errorf(end-1-len(rest), "an unknown escape sequence")
		}
		if c < utf8.RuneSelf || !isMultibyte {
			text.WriteByte(byte(c))
		} else {
			text.WriteRune(c)
		}
		rest = tail
	}
	return []step{literalText(text.String())}, nil
}

// endOfQuoted returns the index behind the quoted text at begin, or -1 if it does not end on its line.
func endOfQuoted(text string, begin int) int {
	for i := begin + 1; i < len(text) && text[i] != '\n'; i++ {
		switch text[i] {
		case '\\':
			i++
		case text[begin]:
			return i + 1
		}
	}
	return -1
}
