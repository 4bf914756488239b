package consistency_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/anykind/anykind/internal/consistency"
)

func TestWrites_WaitsForWhatItsCtxWrote(t *testing.T) {
	errLost := errors.New("lost")
	var waited []string
	record := func(ctx context.Context, id string, err error) {
		consistency.Record(ctx, id, func(context.Context) error { waited = append(waited, id); return err })
	}
	record(t.Context(), "without Writes", nil)
	written := &consistency.Writes{}
	others := &consistency.Writes{}
	record(consistency.WithWrites(t.Context(), others), "of another ctx", nil)
	assert.True(t, written.IsEmpty())
	assert.NoError(t, written.Wait(t.Context()))
	ctx := consistency.WithWrites(t.Context(), written)
	record(ctx, "a", errLost)
	record(ctx, "b", nil)
	record(ctx, "b", nil)
	assert.False(t, written.IsEmpty())
	assert.ErrorIs(t, written.Wait(t.Context()), errLost)
	assert.ElementsMatch(t, []string{"a", "b"}, waited)
}
