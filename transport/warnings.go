package transport

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/anykind/anykind/internal/sanitize"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	// maxWarnings bounds what one Warnings collects.
	maxWarnings = 1000
	// maxWarningLength is the most that an API server sends, in all warnings of a response.
	maxWarningLength = 4 << 10
	// maxRemembered bounds the warnings that a connection remembers: some name an object. After it they may be repeated.
	maxRemembered = 1000
)

// Warnings collects the server's warnings of some calls. It is safe for concurrent use.
type Warnings struct {
	outer *Warnings // of the ctx that the collector was made with

	mu    sync.Mutex
	texts []string
}

type warningsKey struct{}

// CollectWarnings returns a ctx and the warnings of the calls that are made with it. A collector of the outer ctx gets
// them too.
func CollectWarnings(ctx context.Context) (context.Context, *Warnings) {
	outer, _ := ctx.Value(warningsKey{}).(*Warnings)
	collected := &Warnings{outer: outer}
	return context.WithValue(ctx, warningsKey{}, collected), collected
}

// All returns the warnings so far, each once, in the order they came, and at most 1,000: later ones are dropped.
func (w *Warnings) All() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.texts)
}

func (w *Warnings) add(text string) {
	for ; w != nil; w = w.outer {
		w.addOwn(text)
	}
}

func (w *Warnings) addOwn(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.texts) < maxWarnings && !slices.Contains(w.texts, text) {
		w.texts = append(w.texts, text)
	}
}

// warningSet holds the warnings that a connection has passed to Options.Warn.
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
	if s.texts == nil || len(s.texts) >= maxRemembered {
		s.texts = map[string]bool{}
	}
	s.texts[text] = true
	return true
}

// passWarnings hands a response's warnings to the collectors of ctx and to Options.Warn.
func (c *Conn) passWarnings(ctx context.Context, header http.Header) {
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
		text := sanitize.Text(warning.Text, maxWarningLength)
		collected.add(text)
		if c.options.Warn != nil && (c.options.WarnRepeated || c.warnings.add(text)) {
			c.options.Warn(ctx, text)
		}
	}
}
