package dynamic_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/anykind/anykind/dynamic"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

var (
	evicted = failure(http.StatusCreated, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	blocked = failure(http.StatusTooManyRequests, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,
		"message":"Cannot evict pod as it would violate the pod's disruption budget.",
		"details":{"causes":[{"reason":"DisruptionBudget","message":"The disruption budget web needs 2 healthy pods and has 2 currently"}]}}`)
	overloaded = failure(http.StatusTooManyRequests, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,"message":"busy"}`)
	notFound   = failure(http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"pods \"web\" not found"}`)
)

func TestAnEvictionThatABudgetBlocksNamesTheBudget(t *testing.T) {
	pods, book := serve(t, map[string]http.HandlerFunc{"": blocked})
	err := pods.Evict(t.Context(), "web", nil)
	var disruption *dynamic.DisruptionError
	require.ErrorAs(t, err, &disruption)
	assert.Equal(t, []string{"The disruption budget web needs 2 healthy pods and has 2 currently"}, disruption.Causes)
	assert.Equal(t, "POST /api/v1/namespaces/default/pods/web/eviction: not allowed now: "+
		"The disruption budget web needs 2 healthy pods and has 2 currently", err.Error())
	assert.True(t, apierrors.IsTooManyRequests(err))
	assert.Len(t, book.asked(), 1)
}

func TestAnEvictionIsTriedAgainOnlyWhereABudgetBlocksIt(t *testing.T) {
	for name, tc := range map[string]struct {
		answers  http.HandlerFunc
		requests int
		fails    func(error) bool
	}{
		"until it is allowed":      {inTurn(blocked, blocked, evicted), 3, func(err error) bool { return err == nil }},
		"until the pod is gone":    {inTurn(blocked, notFound), 2, apierrors.IsNotFound},
		"not when it is gone":      {notFound, 1, apierrors.IsNotFound},
		"not for a busy server":    {overloaded, 1, apierrors.IsTooManyRequests},
		"not behind a busy server": {inTurn(blocked, overloaded), 2, apierrors.IsTooManyRequests},
	} {
		t.Run(name, func(t *testing.T) {
			pods, book := serve(t, map[string]http.HandlerFunc{"": tc.answers})
			err := pods.Evict(t.Context(), "web", &dynamic.EvictOptions{Retry: true})
			assert.True(t, tc.fails(err), "%v", err)
			var disruption *dynamic.DisruptionError
			assert.NotErrorAs(t, err, &disruption)
			assert.Len(t, book.asked(), tc.requests)
		})
	}
}

func TestAnEvictionThatEndsWithItsContextSaysWhatBlockedIt(t *testing.T) {
	for name, last := range map[string]http.HandlerFunc{
		"in a pause":   blocked,
		"in a request": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			pods, _ := serve(t, map[string]http.HandlerFunc{"": inTurn(blocked, func(w http.ResponseWriter, r *http.Request) {
				cancel()
				last(w, r)
			})})
			err := pods.Evict(ctx, "web", &dynamic.EvictOptions{Retry: true})
			require.ErrorIs(t, err, context.Canceled)
			var disruption *dynamic.DisruptionError
			require.ErrorAs(t, err, &disruption)
			require.ErrorContains(t, err, `evict pods "web": `)
			require.ErrorContains(t, err, "what blocked it: ")
			require.ErrorContains(t, err, "The disruption budget web needs 2 healthy pods")
		})
	}
}
