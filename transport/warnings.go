package transport

import (
	"context"
	"net/http"
	"slices"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Warnings collects what the server warned of during some calls. It is safe for concurrent use.
type Warnings struct {
	mu    sync.Mutex
	texts []string
}

type warningsKey struct{}

// CollectWarnings returns a ctx, and what the server warns of in calls that are made with it.
func CollectWarnings(ctx context.Context) (context.Context, *Warnings) {
	collected := &Warnings{}
	return context.WithValue(ctx, warningsKey{}, collected), collected
}

// All returns the warnings so far, each once, in the order they came.
func (w *Warnings) All() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.texts)
}

func (w *Warnings) add(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.texts, text) {
		w.texts = append(w.texts, text)
	}
}

// heard are the warnings that a connection has passed on.
type heard struct {
	mu    sync.Mutex
	texts map[string]bool
}

// maxHeard bounds what is remembered: some warnings name an object. After it they may come again.
const maxHeard = 1000

// first says whether the text is new.
func (h *heard) first(text string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.texts[text] {
		return false
	}
	if h.texts == nil || len(h.texts) >= maxHeard {
		h.texts = map[string]bool{}
	}
	h.texts[text] = true
	return true
}

// hear passes a response's warnings on.
func (c *Conn) hear(ctx context.Context, header http.Header) {
	lines := header["Warning"]
	if len(lines) == 0 {
		return
	}
	collected, _ := ctx.Value(warningsKey{}).(*Warnings)
	// Lines that cannot be read are left out, as in client-go.
	read, _ := utilnet.ParseWarningHeaders(lines)
	for _, warning := range read {
		if warning.Code != 299 || warning.Text == "" {
			continue
		}
		if collected != nil {
			collected.add(warning.Text)
		}
		if c.options.Warn != nil && c.warnings.first(warning.Text) {
			c.options.Warn(ctx, warning.Text)
		}
	}
}
