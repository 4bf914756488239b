package dynamic_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestATokenPrintsWithoutItsSecret(t *testing.T) {
	client, _ := script(t, tokenReply)
	token, err := resource(t, client, "sa").CreateToken(t.Context(), "robot", nil)
	require.NoError(t, err)
	assert.Equal(t, dynamic.Token{Token: "s3cret", Expires: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, *token)
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("issued", "token", token, "value", *token)
	for _, shown := range []string{
		fmt.Sprint(token), fmt.Sprintf("%v %+v %#v %s %q", token, token, token, token, token),
		fmt.Sprintf("%v %+v %#v %s %q", *token, *token, *token, *token, *token), logged.String(),
	} {
		assert.Contains(t, shown, "a token that expires at 2026-01-02T03:04:05Z")
		assert.NotContains(t, shown, "s3cret")
	}
}

func TestAnAnswerWithoutATokenIsAnErrorThatShowsNoSecret(t *testing.T) {
	for _, reply := range []string{
		``, `{}`, `{"status":{"token":""}}`, strings.TrimSuffix(tokenReply, "}}"), strings.Replace(tokenReply, "2026-01-02", "s3cret", 1),
		`{"status":{"token":["s3cret"]}}`, `"s3cret"`,
	} {
		client, _ := script(t, reply)
		token, err := resource(t, client, "sa").CreateToken(t.Context(), "robot", nil)
		require.ErrorContains(t, err, `create serviceaccounts/token "robot": POST http://127.0.0.1`, reply)
		require.ErrorContains(t, err, "the answer holds no token", reply)
		assert.NotContains(t, err.Error(), "s3cret")
		assert.Nil(t, token)
	}
}
