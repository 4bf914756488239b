package normalize

import (
	"fmt"
	"slices"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// WithoutTexts returns a Status without its message, and with its causes as unique types and fields. Values of
// different kinds are returned unchanged. apitest rejects objects of built-in kinds with texts of its own.
func WithoutTexts(value any) any {
	status, _ := value.(map[string]any)
	if status["kind"] != "Status" || status["status"] != "Failure" {
		return value
	}
	delete(status, "message")
	if details := nested.Map(status, "details"); details["causes"] != nil {
		var causes []string
		for _, cause := range nested.Maps(details, "causes") {
			causes = append(causes, fmt.Sprint(cause["reason"], " ", cause["field"]))
		}
		slices.Sort(causes)
		details["causes"] = fmt.Sprint(slices.Compact(causes))
	}
	return value
}
