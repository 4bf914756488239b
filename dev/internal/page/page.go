// Package page writes generated text into documents.
package page

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Write replaces the text of a file between two markers. The markers stay.
func Write(path, begin, end, text string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed, err := Replace(string(content), begin, end, text)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.WriteFile(path, []byte(changed), 0o644) //nolint:gosec // as other documents
}

// Replace replaces the text of a document between two markers. The markers stay.
func Replace(document, begin, end, text string) (string, error) {
	before, rest, found := strings.Cut(document, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", errors.New("markers of the table missing")
	}
	return before + begin + text + end + after, nil
}
