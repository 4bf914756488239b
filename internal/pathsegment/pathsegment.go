// Package pathsegment validates segments of URL paths, such as names and namespaces, as the API server does. apimachinery has
// the rules in different packages: api/validation/path up to version 0.35, api/validate/content later.
package pathsegment

import (
	"fmt"
	"strings"
)

// Validate returns the reasons why text is not a valid path segment, or nil. Empty text is valid.
func Validate(text string) (reasons []string) {
	if text == "." || text == ".." {
		return []string{fmt.Sprintf("may not be '%s'", text)}
	}
	for _, illegal := range [...]string{"/", "%"} {
		if strings.Contains(text, illegal) {
			reasons = append(reasons, fmt.Sprintf("may not contain '%s'", illegal))
		}
	}
	return reasons
}
