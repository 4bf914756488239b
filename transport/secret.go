package transport

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"

	"github.com/anykind/anykind/transport/kubeconfig"
)

// Secret is a text that no fmt verb, log/slog handler or encoder shows; see [kubeconfig.Secret]. Reveal returns it.
type Secret = kubeconfig.Secret

// NewSecret returns a secret that holds text.
func NewSecret(text string) Secret { return kubeconfig.NewSecret(text) }

// printSafe implements fmt.Formatter for every verb: %d and %x would print the bytes of a key where there were only a
// String.
func printSafe(state fmt.State, value slog.LogValuer) {
	_, _ = io.WriteString(state, value.LogValue().String())
}

// safeJSON implements json.Marshaler with what printSafe prints.
func safeJSON(value slog.LogValuer) ([]byte, error) { return json.Marshal(value.LogValue().String()) }
