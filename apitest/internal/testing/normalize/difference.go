package normalize

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Differences returns a line for each difference between two decoded JSON values.
func Differences(want, got any) []string { return differences("", want, got) }

func differences(at string, want, got any) []string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		var lines []string
		names := maps.Clone(w)
		maps.Copy(names, g)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			wantField, wanted := w[name]
			gotField, found := g[name]
			switch field := at + "." + name; {
			case !found:
				lines = append(lines, fmt.Sprintf("%s: want %s, got none", field, show(wantField)))
			case !wanted:
				lines = append(lines, fmt.Sprintf("%s: want none, got %s", field, show(gotField)))
			default:
				lines = append(lines, differences(field, wantField, gotField)...)
			}
		}
		return lines
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			break
		}
		var lines []string
		for i := range w {
			lines = append(lines, differences(fmt.Sprintf("%s[%d]", at, i), w[i], g[i])...)
		}
		return lines
	}
	if reflect.DeepEqual(want, got) {
		return nil
	}
	return []string{fmt.Sprintf("%s: want %s, got %s", at, show(want), show(got))}
}

func show(value any) string {
	content, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(content)
}
