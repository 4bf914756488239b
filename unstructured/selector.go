package unstructured

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// selector is a by-key step of a path, [name=app] or [containerPort=80,protocol=TCP]. It selects the first element with all keys,
// like the map keys of a list in Kubernetes (https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy).
type selector []key

// key requires field name to be the string text or, if unquoted, the number or bool with the JSON form text.
type key struct {
	name, text string
	quoted     bool
}

// parseSelector parses a step beginning with "[". The selector must be the whole step.
func parseSelector(step string) (selector, error) {
	p := pathParser{text: step, pos: 1, end: len(step)}
	keys, err := p.keys()
	if err == nil && p.pos != len(step) {
		err = p.unexpected("is behind the ]")
	}
	return keys, err
}

func isSelector(step string) bool {
	if !strings.HasPrefix(step, "[") || !strings.HasSuffix(step, "]") {
		return false
	}
	_, err := parseSelector(step)
	return err == nil
}

func (s selector) index(list []any) int { return slices.IndexFunc(list, s.selects) }

func (s selector) selects(element any) bool {
	m, ok := element.(map[string]any)
	return ok && !slices.ContainsFunc(s, func(k key) bool { return !k.matches(m[k.name]) })
}

func (k key) matches(v any) bool {
	if s, ok := v.(string); ok {
		return s == k.text
	}
	return !k.quoted && scalarText(v) == k.text
}

// scalarText returns the JSON form of a number or bool, and "" for any further type.
func scalarText(v any) string {
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v)
	case float64:
		data, _ := json.Marshal(v) // empty for NaN and infinities
		return string(data)
	}
	if n, ok := integer(v); ok {
		return strconv.FormatInt(n, 10)
	}
	return ""
}

// complete adds the missing keys to m. An unquoted text is a string if an element of list has a string in this field. Otherwise
// it is decoded as JSON, if possible.
func (s selector) complete(m map[string]any, list []any) {
	for _, k := range s {
		if _, has := m[k.name]; !has {
			m[k.name] = k.value(list)
		}
	}
}

func (k key) value(list []any) any {
	for _, element := range list {
		other, _ := element.(map[string]any)
		if _, isText := other[k.name].(string); isText {
			return k.text
		}
	}
	if k.quoted {
		return k.text
	}
	if v, err := decodeValue([]byte(k.text)); err == nil && scalarText(v) == k.text {
		return v
	}
	return k.text
}

// keys parses a selector after its "[", including its "]".
func (p *pathParser) keys() (selector, error) {
	var s selector
	for {
		name, _, err := p.word("='") // a single quote begins a quoted field name
		if err != nil {
			return nil, err
		}
		if !p.accept('=') {
			return nil, p.unexpected("is where a by-key step has =")
		}
		text, quoted, err := p.word("")
		if err != nil {
			return nil, err
		}
		s = append(s, key{name: name, text: text, quoted: quoted})
		switch {
		case p.accept(']'):
			return s, nil
		case !p.accept(','):
			return nil, p.unexpected("is where a by-key step has , or ]")
		}
	}
}

// word parses a quoted or an unquoted text. An unquoted text ends before a special character or a character of end.
func (p *pathParser) word(end string) (text string, quoted bool, err error) {
	if strings.HasPrefix(p.rest(), `"`) {
		text, err = p.quoted()
		return text, true, err
	}
	rest := p.rest()
	n := strings.IndexFunc(rest, func(c rune) bool {
		return strings.ContainsRune(`[],"`, c) || strings.ContainsRune(end, c) || unicode.IsSpace(c) || unicode.IsControl(c)
	})
	if n < 0 {
		n = len(rest)
	}
	if n == 0 {
		return "", false, p.unexpected("is where a key or value should be; put what is unusual in quotes")
	}
	p.pos += n
	return rest[:n], false, nil
}
