package dynamic_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/dynamic"
)

var (
	evicted = failure(http.StatusCreated, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	blocked = failure(http.StatusTooManyRequests, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,
		"message":"Cannot evict pod as it would violate the pod's disruption budget.",
		"details":{"causes":[{"reason":"DisruptionBudget","message":"The disruption budget web needs 2 healthy pods and has 2 currently"}]}}`)
	overloaded = failure(http.StatusTooManyRequests, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,"message":"busy"}`)
	notFound   = failure(http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"pods \"web\" not found"}`)
)

func TestEvict_BlockedByBudget(t *testing.T) {
	pods, book := serve(t, map[string]http.HandlerFunc{"": blocked})
	err := pods.Evict(t.Context(), "web", nil)
	var disruption *dynamic.DisruptionBudgetError
	require.ErrorAs(t, err, &disruption)
	assert.Equal(t, []string{"The disruption budget web needs 2 healthy pods and has 2 currently"}, disruption.Causes)
	assert.Equal(t, "POST /api/v1/namespaces/home/pods/web/eviction: not allowed now: "+
		"The disruption budget web needs 2 healthy pods and has 2 currently", err.Error())
	assert.True(t, apierrors.IsTooManyRequests(err))
	assert.Len(t, book.seen(), 1)
}

func TestEvict_RetriesBudgetErrorsOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		respond  http.HandlerFunc
		requests int
		fails    func(error) bool
	}{
		"allowed later":     {inTurn(blocked, blocked, evicted), 3, func(err error) bool { return err == nil }},
		"pod deleted later": {inTurn(blocked, notFound), 2, apierrors.IsNotFound},
		"not found":         {notFound, 1, apierrors.IsNotFound},
		"busy server":       {overloaded, 1, apierrors.IsTooManyRequests},
		"busy server later": {inTurn(blocked, overloaded), 2, apierrors.IsTooManyRequests},
	} {
		t.Run(name, func(t *testing.T) {
			pods, book := serve(t, map[string]http.HandlerFunc{"": tc.respond})
			err := pods.Evict(t.Context(), "web", &dynamic.EvictOptions{Retry: true})
			assert.True(t, tc.fails(err), "%v", err)
			var disruption *dynamic.DisruptionBudgetError
			assert.NotErrorAs(t, err, &disruption)
			assert.Len(t, book.seen(), tc.requests)
		})
	}
}

func TestEvict_ContextEnds(t *testing.T) {
	for name, last := range map[string]http.HandlerFunc{
		"in backoff":   blocked,
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
			var disruption *dynamic.DisruptionBudgetError
			require.ErrorAs(t, err, &disruption)
			require.ErrorContains(t, err, `evict pods "web": `)
			require.ErrorContains(t, err, "the last attempt: ")
			require.ErrorContains(t, err, "The disruption budget web needs 2 healthy pods")
		})
	}
}

func TestToken_PrintsWithoutSecret(t *testing.T) {
	client, _ := script(t, tokenReply)
	token, err := resource(t, client, "sa").CreateToken(t.Context(), "robot", nil)
	require.NoError(t, err)
	assert.Equal(t, dynamic.Token{Token: "s3cret", ExpiresAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, *token)
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("issued", "token", token, "value", *token)
	for _, shown := range []string{
		fmt.Sprint(token), fmt.Sprintf("%v %+v %#v %s %q %d %x", token, token, token, token, token, token, token),
		fmt.Sprintf("%v %+v %#v %s %q %d %x", *token, *token, *token, *token, *token, *token, *token), logged.String(),
	} {
		assert.Contains(t, shown, "token that expires at 2026-01-02T03:04:05Z")
		assert.NotContains(t, shown, "s3cret")
	}
}

func TestCreateToken_InvalidResponse(t *testing.T) {
	for _, reply := range []string{
		``, `{}`, `{"status":{"token":""}}`, strings.TrimSuffix(tokenReply, "}}"), strings.Replace(tokenReply, "2026-01-02", "s3cret", 1),
		`{"status":{"token":["s3cret"]}}`, `"s3cret"`,
	} {
		client, _ := script(t, reply)
		token, err := resource(t, client, "sa").CreateToken(t.Context(), "robot", nil)
		require.ErrorContains(t, err, "POST http://server.test", reply)
		require.ErrorContains(t, err, "the response has no token", reply)
		assert.NotContains(t, err.Error(), "s3cret")
		assert.Nil(t, token)
	}
}
