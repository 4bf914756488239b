package oidc

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/credentials"
)

// store keeps one user's tokens for several programs.
type store struct {
	idToken, refreshToken string
	broken                error // of saving
}

func (s *store) load(context.Context) (idToken, refreshToken string, err error) {
	return s.idToken, s.refreshToken, nil
}

func (s *store) save(_ context.Context, idToken, refreshToken string) error {
	if s.broken == nil {
		s.idToken = idToken
		s.refreshToken = refreshToken
	}
	return s.broken
}

// storedOIDC returns an authenticator whose tokens are kept in a store.
func storedOIDC(t *testing.T) (a *Authenticator, issuer *credentials.Issuer, kept *store, c *credentials.Clock) {
	issuer = credentials.NewIssuer(t)
	c = credentials.NewClock()
	cfg := configOf(t, issuer)
	kept = &store{refreshToken: cfg.RefreshToken}
	cfg.LoadTokens = kept.load
	cfg.SaveTokens = kept.save
	return newAuthenticator(t, cfg, c), issuer, kept, c
}

func refreshTokens(issuer *credentials.Issuer) (sent []string) {
	for _, form := range issuer.Requests() {
		sent = append(sent, form["refresh_token"])
	}
	return sent
}

func TestAuthenticator_LoadsTokensOfOtherProcess(t *testing.T) {
	a, issuer, kept, c := storedOIDC(t)
	kept.idToken = credentials.IDToken("other", c.Now().Add(time.Hour))
	kept.refreshToken = "rotated"
	got, err := a.Credential(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "Bearer "+kept.idToken, got.Authorization)
	assert.Empty(t, issuer.Requests(), "a fresh ID token needs no refresh")

	issuer.Respond(credentials.IDToken("next", c.Now().Add(2*time.Hour)), "")
	c.Advance(time.Hour)
	_, err = a.Credential(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"rotated"}, refreshTokens(issuer), "the first refresh token was never used")
}

func TestAuthenticator_LoadsIDTokenAlone(t *testing.T) {
	for _, refreshToken := range []string{credentials.RefreshToken, ""} { // the issuer keeps it, or has issued none
		a, issuer, kept, c := storedOIDC(t)
		a.refreshToken = refreshToken
		a.stored = refreshToken
		kept.refreshToken = refreshToken
		for _, name := range []string{"first", "second"} {
			kept.idToken = credentials.IDToken(name, c.Now().Add(time.Hour))
			got, err := a.Credential(t.Context())
			require.NoError(t, err)
			assert.Equal(t, "Bearer "+kept.idToken, got.Authorization)
			c.Advance(time.Hour)
		}
		assert.Empty(t, issuer.Requests())
		_, err := a.Credential(t.Context())
		require.Error(t, err, "the stored ID token has expired, too")
	}
}

func TestAuthenticator_LoadsAgainWhenRejected(t *testing.T) {
	a, issuer, kept, c := storedOIDC(t)
	good := credentials.IDToken("ann", c.Now().Add(time.Hour))
	accepted := respond(http.StatusOK, "application/json", `{"access_token":"a","token_type":"bearer","id_token":"`+good+`"}`)
	issuer.Token = func(w http.ResponseWriter, r *http.Request) {
		if r.PostFormValue("refresh_token") == "rotated" {
			accepted(w, r)
			return
		}
		kept.refreshToken = "rotated" // by another process, while this request was under way
		respond(http.StatusBadRequest, "application/json", `{"error":"invalid_grant"}`)(w, r)
	}
	got, err := a.Credential(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "Bearer "+good, got.Authorization)
	assert.Equal(t, good, kept.idToken)
}

func TestAuthenticator_KeepsTokenNotSaved(t *testing.T) {
	a, issuer, kept, c := storedOIDC(t)
	kept.broken = errors.New("disk full")
	kept.idToken = credentials.IDToken("0", c.Now())
	issuer.Respond(credentials.IDToken("1", c.Now().Add(time.Hour)), "newer")
	_, err := a.Credential(t.Context())
	require.ErrorIs(t, err, kept.broken)
	kept.broken = nil
	c.Advance(time.Hour)
	issuer.Respond(credentials.IDToken("2", c.Now().Add(time.Hour)), "")
	_, err = a.Credential(t.Context())
	require.NoError(t, err)
	sent := refreshTokens(issuer)
	assert.Equal(t, "newer", sent[len(sent)-1], "the stored one is spent")
	assert.Equal(t, "newer", kept.refreshToken)
}
