package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEndError_CauseOfEnd(t *testing.T) {
	errParent := errors.New("the operator asked for it")
	errOwn := errors.New("the cache failed")
	for name, tc := range map[string]struct {
		parentCause error // nil for an end without a cause
		own         error // the cause with which ctx itself is canceled; nil for none
		endsFirst   string
		wrapped     []error
		not         error
	}{
		"parent ended with a cause":             {errParent, nil, "parent", []error{context.Canceled, errParent}, errOwn},
		"parent ended without a cause":          {nil, nil, "parent", []error{context.Canceled}, errOwn},
		"own error while parent lives":          {nil, errOwn, "own", []error{errOwn}, context.Canceled},
		"own error before parent":               {errParent, errOwn, "both", []error{errOwn}, context.Canceled},
		"own error that wraps parent's Err":     {errParent, fmt.Errorf("list: %w", context.Canceled), "both", []error{context.Canceled, errParent}, errOwn},
		"own error that wraps parent's cause":   {errParent, fmt.Errorf("list: %w", errParent), "both", []error{context.Canceled, errParent}, errOwn},
		"own canceled while the parent lives":   {nil, fmt.Errorf("list: %w", context.Canceled), "own", []error{context.Canceled}, errParent},
		"own error, and parent without a cause": {nil, errOwn, "both", []error{errOwn}, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			parent, endParent := context.WithCancelCause(t.Context())
			defer endParent(nil)
			ctx, stop := context.WithCancelCause(parent)
			defer stop(nil)
			if tc.endsFirst != "parent" {
				stop(tc.own)
			}
			if tc.endsFirst != "own" {
				endParent(tc.parentCause)
			}
			err := endError(parent, ctx)
			for _, want := range tc.wrapped {
				assert.ErrorIs(t, err, want)
			}
			assert.NotErrorIs(t, err, tc.not)
		})
	}
}
