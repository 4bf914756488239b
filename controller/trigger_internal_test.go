package controller

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
)

func TestServedLog_Note(t *testing.T) {
	var text bytes.Buffer
	handler := slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	served := servedLog{log: slog.New(handler), resource: "/apis/example.com/v1/widgets"}
	var lines []int // after each change
	for _, change := range []watch.EventType{watch.Added, dynamic.Synced, dynamic.NotServed, watch.Deleted, dynamic.Synced, dynamic.Synced} {
		served.handle(change)
		lines = append(lines, bytes.Count(text.Bytes(), []byte("\n")))
	}
	assert.Equal(t, []int{0, 0, 1, 1, 2, 2}, lines)
	assert.Equal(t, `level=WARN msg="the server does not serve the resource: its objects are kept" resource=/apis/example.com/v1/widgets
level=INFO msg="the server serves the resource again" resource=/apis/example.com/v1/widgets
`, text.String())
}
