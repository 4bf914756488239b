package describe

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/anykind/anykind/cli/internal/nested"
)

// textAt returns the scalar at a path as text, or "".
func textAt(value any, path ...string) string { return scalar(nested.Value(value, path...)) }

// maxText is the length in bytes of the longest text that is written. Longer texts, such as encoded data, are replaced by their size.
const maxText = 10_000

// scalar formats a scalar. Maps and lists are formatted as JSON.
func scalar(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		if len(v) > maxText {
			return fmt.Sprintf("<%d bytes>", len(v))
		}
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case map[string]any, []any:
		data, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return scalar(string(data))
	default:
		return fmt.Sprint(v)
	}
}

// or returns text, or other if text is empty.
func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// pairs returns a line NAME + separator + VALUE for each entry of a map.
func pairs(values map[string]any, separator string) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		lines = append(lines, name+separator+scalar(values[name]))
	}
	return lines
}

// texts returns the scalars of a list.
func texts(list []any) (all []string) {
	for _, value := range list {
		all = append(all, scalar(value))
	}
	return all
}

// timeText formats an API time like kubectl describe. An invalid time is returned unchanged.
func timeText(value string) string {
	parsed, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return value
	}
	return parsed.Local().Format(time.RFC1123Z)
}

// age returns the time since an API time, or <unknown> for an invalid time.
func age(value string, now time.Time) string {
	parsed, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(parsed))
}
