package kubeconfig

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"unique"
)

// Secret is a text that no fmt verb, log/slog handler or encoder shows, also as an unexported field of another type: they
// write REDACTED, or an address. [Secret.Reveal] returns it. The zero value is an empty text; equal secrets are ==.
type Secret struct{ text unique.Handle[string] }

// NewSecret returns a secret that holds text.
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

// Format implements fmt.Formatter for every verb, with what String returns.
func (s Secret) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, s.String()) }

// LogValue implements slog.LogValuer, with what String returns.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText implements encoding.TextMarshaler, with what String returns: JSON and other encodings do not show a secret.
// [Document.Put] writes it into a kubeconfig file.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalJSON reads a JSON string.
func (s *Secret) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	*s = NewSecret(text)
	return nil
}

// SecretData is a [Secret] that a file holds in base64.
type SecretData struct{ Secret }

// NewSecretData returns a secret that holds data.
func NewSecretData(data []byte) SecretData { return SecretData{NewSecret(string(data))} }

// UnmarshalJSON reads a JSON string of base64.
func (s *SecretData) UnmarshalJSON(data []byte) error {
	var decoded []byte
	if err := json.Unmarshal(data, &decoded); err != nil {
		return err
	}
	*s = NewSecretData(decoded)
	return nil
}
