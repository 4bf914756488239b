package unstructured

import (
	"bytes"
	"encoding/json"
)

// twice finds the first field that an object in text, which is JSON and has been checked, has twice, and the offset
// behind its second name; 0 if there is none.
func twice(text []byte) (name string, offset int) {
	tokens := json.NewDecoder(bytes.NewReader(text))
	tokens.UseNumber()
	type level struct {
		names  map[string]bool // nil in a list
		isName bool            // what comes next
	}
	var levels []level
	for {
		token, err := tokens.Token()
		if err != nil {
			return "", 0
		}
		top := len(levels) - 1
		switch token {
		case json.Delim('}'), json.Delim(']'):
			levels = levels[:top]
			continue
		}
		if top >= 0 && levels[top].names != nil {
			if levels[top].isName {
				name, _ := token.(string)
				if levels[top].names[name] {
					return name, int(tokens.InputOffset())
				}
				levels[top].names[name], levels[top].isName = true, false
				continue
			}
			levels[top].isName = true
		}
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{names: map[string]bool{}, isName: true})
		case json.Delim('['):
			levels = append(levels, level{})
		}
	}
}
