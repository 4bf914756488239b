package kubeconfig

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"unique"
)

// Secret is a text hidden from fmt, log/slog and encoders. They write REDACTED, or an address for an unexported field of a
// struct. [Secret.Reveal] returns the text. The zero value is an empty text; equal secrets are ==.
type Secret struct{ text unique.Handle[string] }

// NewSecret returns a Secret with the text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{unique.Make(text)}
}

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.IsZero() {
		return ""
	}
	return s.text.Value()
}

// IsZero reports whether the text is empty.
func (s Secret) IsZero() bool { return s == Secret{} }

// String returns REDACTED, or nothing for an empty secret.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return "REDACTED"
}

// Format implements fmt.Formatter for every verb, with the text of String.
func (s Secret) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, s.String()) }

// LogValue implements slog.LogValuer with the text of String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText implements encoding.TextMarshaler with the text of String: JSON and further encodings hide a secret. Package edit
// writes it to kubeconfig files.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalJSON decodes a JSON string.
func (s *Secret) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	*s = NewSecret(text)
	return nil
}

// SecretData is a [Secret] encoded in base64 in files.
type SecretData struct{ Secret }

// NewSecretData returns a SecretData with the data.
func NewSecretData(data []byte) SecretData { return SecretData{NewSecret(string(data))} }

// UnmarshalJSON decodes a JSON string of base64.
func (s *SecretData) UnmarshalJSON(data []byte) error {
	var decoded []byte
	if err := json.Unmarshal(data, &decoded); err != nil {
		return err
	}
	*s = NewSecretData(decoded)
	return nil
}
