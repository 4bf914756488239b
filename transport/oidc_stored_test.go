package transport

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// store is where several programs keep one user's tokens.
type store struct {
	idToken, refreshToken string
	broken                error // of saving
}

func (s *store) load(context.Context) (idToken, refreshToken string, err error) {
	return s.idToken, s.refreshToken, nil
}

func (s *store) save(_ context.Context, idToken, refreshToken string) error {
	if s.broken == nil {
		s.idToken, s.refreshToken = idToken, refreshToken
	}
	return s.broken
}

// storedOIDC returns an authenticator whose tokens are kept in a store.
func storedOIDC(t *testing.T) (a *oidcAuthenticator, issuer *fakeIssuer, kept *store, c *clock) {
	issuer, c = newFakeIssuer(t), newClock()
	oidc := issuer.oidc()
	kept = &store{refreshToken: oidc.RefreshToken.Reveal()}
	oidc.Load, oidc.Save = kept.load, kept.save
	return oidcAuthenticatorOf(t, &Config{OIDC: oidc}, c), issuer, kept, c
}

func refreshTokens(issuer *fakeIssuer) (sent []string) {
	for _, form := range issuer.got() {
		sent = append(sent, form["refresh_token"])
	}
	return sent
}

func TestOIDC_TakesTokensOfOtherProcess(t *testing.T) {
	a, issuer, kept, c := storedOIDC(t)
	kept.idToken, kept.refreshToken = jwtUntil("other", c.now().Add(time.Hour)), "rotated"
	who, err := a.identity(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "Bearer "+kept.idToken, who.authorization)
	assert.Empty(t, issuer.got(), "a fresh ID token needs no refresh")

	issuer.give(jwtUntil("next", c.now().Add(2*time.Hour)), "")
	c.advance(time.Hour)
	_, err = a.identity(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"rotated"}, refreshTokens(issuer), "the first refresh token was never used")
}

func TestOIDC_ReadsStoreAgainWhenRefused(t *testing.T) {
	a, issuer, kept, c := storedOIDC(t)
	good := jwtUntil("ann", c.now().Add(time.Hour))
	accepted := answering(http.StatusOK, "application/json", `{"access_token":"a","token_type":"bearer","id_token":"`+good+`"}`)
	issuer.token = func(w http.ResponseWriter, r *http.Request) {
		if r.PostFormValue("refresh_token") == "rotated" {
			accepted(w, r)
			return
		}
		kept.refreshToken = "rotated" // by another process, while this request was under way
		answering(http.StatusBadRequest, "application/json", `{"error":"invalid_grant"}`)(w, r)
	}
	who, err := a.identity(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "Bearer "+good, who.authorization)
	assert.Equal(t, good, kept.idToken)
}

func TestOIDC_KeepsOwnTokenThatWasNotSaved(t *testing.T) {
	a, issuer, kept, c := storedOIDC(t)
	kept.broken = errors.New("disk full")
	issuer.give(jwtUntil("1", c.now().Add(time.Hour)), "newer")
	_, err := a.identity(t.Context())
	require.ErrorIs(t, err, kept.broken)
	kept.broken = nil
	c.advance(time.Hour)
	issuer.give(jwtUntil("2", c.now().Add(time.Hour)), "")
	_, err = a.identity(t.Context())
	require.NoError(t, err)
	sent := refreshTokens(issuer)
	assert.Equal(t, "newer", sent[len(sent)-1], "the stored one is spent")
	assert.Equal(t, "newer", kept.refreshToken)
}
