package write

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// sortByPosition sorts texts such as `unknown field "spec.x"` by the field's position in the document, like a typed decoder. A
// duplicate field counts at its second position.
func sortByPosition(texts []string, document []byte) {
	if len(texts) < 2 || len(document) == 0 {
		return
	}
	positions := fieldPositions(document)
	position := func(text string) int {
		kind, quoted, _ := strings.Cut(text, " field ")
		path, err := strconv.Unquote(quoted)
		if err != nil {
			return math.MaxInt
		}
		found := positions[path]
		switch {
		case kind == "duplicate" && len(found) > 1:
			return found[1]
		case len(found) > 0:
			return found[0]
		}
		return math.MaxInt
	}
	slices.SortStableFunc(texts, func(a, b string) int { return position(a) - position(b) })
}

// fieldPositions returns the offsets of the fields of a JSON document by path.
func fieldPositions(document []byte) map[string][]int {
	scanner := &positionScanner{decoder: json.NewDecoder(bytes.NewReader(document)), positions: map[string][]int{}}
	scanner.value("")
	return scanner.positions
}

type positionScanner struct {
	decoder   *json.Decoder
	positions map[string][]int
}

func (s *positionScanner) value(path string) {
	token, err := s.decoder.Token()
	if err != nil {
		return
	}
	switch token {
	case json.Delim('{'):
		for s.decoder.More() {
			name, err := s.decoder.Token()
			if err != nil {
				return
			}
			field, _ := name.(string)
			if path != "" {
				field = path + "." + field
			}
			s.positions[field] = append(s.positions[field], int(s.decoder.InputOffset()))
			s.value(field)
		}
	case json.Delim('['):
		for i := 0; s.decoder.More(); i++ {
			s.value(path + "[" + strconv.Itoa(i) + "]")
		}
	default:
		return
	}
	_, _ = s.decoder.Token() // the closing delimiter
}
