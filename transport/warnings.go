package transport

import (
	"context"
	"net/http"
	"slices"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/anykind/anykind/internal/sanitize"
)

const (
	// maxWarnings limits the warnings in a Warnings.
	maxWarnings = 1000
	// maxWarningLength is an API server's limit for all warnings of a response, in bytes.
	maxWarningLength = 4 << 10
	// maxSeenWarnings limits the warnings remembered by a connection, because some warnings name an object. Beyond the limit,
	// warnings may repeat.
	maxSeenWarnings = 1000
)

// Warnings collects the server's warnings of some calls. It is safe for concurrent use.
type Warnings struct {
	outer *Warnings // of the ctx passed to CollectWarnings

	mu    sync.Mutex
	texts []string
}

type warningsKey struct{}

// CollectWarnings returns a ctx and the warnings of calls with this ctx. A collector in the given ctx receives them, too.
func CollectWarnings(ctx context.Context) (context.Context, *Warnings) {
	outer, _ := ctx.Value(warningsKey{}).(*Warnings)
	collected := &Warnings{outer: outer}
	return context.WithValue(ctx, warningsKey{}, collected), collected
}

// All returns the warnings so far in order, without repetition. Warnings after the first 1,000 are dropped.
func (w *Warnings) All() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.texts)
}

func (w *Warnings) add(text string) {
	for ; w != nil; w = w.outer {
		w.mu.Lock()
		if len(w.texts) < maxWarnings && !slices.Contains(w.texts, text) {
			w.texts = append(w.texts, text)
		}
		w.mu.Unlock()
	}
}

// warningSet has the warnings already passed to Options.OnWarning.
type warningSet struct {
	mu    sync.Mutex
	texts map[string]bool
}

// add reports whether the text is new.
func (s *warningSet) add(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.texts[text] {
		return false
	}
	if s.texts == nil || len(s.texts) >= maxSeenWarnings {
		s.texts = map[string]bool{}
	}
	s.texts[text] = true
	return true
}

// handleWarnings passes a response's warnings to the collectors of ctx and to Options.OnWarning.
func (c *Conn) handleWarnings(ctx context.Context, header http.Header) {
	lines := header["Warning"]
	if len(lines) == 0 {
		return
	}
	collected, _ := ctx.Value(warningsKey{}).(*Warnings)
	// Malformed lines are left out, as in client-go.
	parsed, _ := utilnet.ParseWarningHeaders(lines)
	for _, warning := range parsed {
		if warning.Code != 299 || warning.Text == "" {
			continue
		}
		text := sanitize.Text(warning.Text, maxWarningLength)
		collected.add(text)
		if c.options.OnWarning != nil && (c.options.RepeatWarnings || c.warnings.add(text)) {
			c.options.OnWarning(ctx, text)
		}
	}
}
