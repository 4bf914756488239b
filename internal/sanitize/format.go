package sanitize

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// Format implements fmt.Formatter for types with secrets, with the text of LogValue for every verb: with String alone, %d and
// %x would print the bytes of a key.
func Format(state fmt.State, value slog.LogValuer) {
	_, _ = io.WriteString(state, value.LogValue().String()) // fmt.State returns no error
}

// JSON implements json.Marshaler with the text of [Format].
func JSON(value slog.LogValuer) ([]byte, error) { return json.Marshal(value.LogValue().String()) }
