package plan_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/plan"
)

func TestObjects_ErrorHasContextErrorAndCause(t *testing.T) {
	client := dynamic.New(scripted.Connect(t, scripted.New("/v1 configmaps configmap ConfigMap"), nil), nil)
	errStopped := errors.New("stopped")
	ctx, end := context.WithCancelCause(t.Context())
	end(errStopped)
	_, err := plan.Objects(ctx, client, nil, nil)
	require.ErrorIs(t, err, errStopped)
	require.ErrorIs(t, err, context.Canceled)
}
