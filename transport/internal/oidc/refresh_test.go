package oidc

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/credentials"
	"github.com/anykind/anykind/transport/internal/credential"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// configOf returns the configuration of an issuer's user whose ID token is missing.
func configOf(t *testing.T, issuer *credentials.Issuer) Config {
	t.Helper()
	none, err := credential.NewStatic(kubeconfig.User{})
	require.NoError(t, err)
	return Config{
		Issuer: issuer.IssuerURL(), ClientID: credentials.ClientID, ClientSecret: credentials.ClientSecret,
		RefreshToken: credentials.RefreshToken, CA: credential.NewFile(issuer.CAData(), ""), Certificate: none,
	}
}

func newAuthenticator(t *testing.T, cfg Config, c *credentials.Clock) *Authenticator {
	t.Helper()
	a, err := New(cfg)
	require.NoError(t, err)
	a.tokens.Now = c.Now
	return a
}

func TestAuthenticator_RefreshesAtExpiry(t *testing.T) {
	issuer := credentials.NewIssuer(t)
	c := credentials.NewClock()
	first := credentials.IDToken("1", c.Now().Add(time.Hour))
	second := credentials.IDToken("2", c.Now().Add(2*time.Hour))
	third := credentials.IDToken("3", c.Now().Add(3*time.Hour))
	cfg := configOf(t, issuer)
	cfg.IDToken = first
	var saved []string
	cfg.SaveTokens = func(_ context.Context, idToken, refreshToken string) error {
		saved = append(saved, idToken, refreshToken)
		return nil
	}
	a := newAuthenticator(t, cfg, c)
	now := func() *credential.Credential {
		got, err := a.Credential(t.Context())
		require.NoError(t, err)
		return got
	}
	before := now()
	assert.Equal(t, "Bearer "+first, before.Authorization)
	assert.Same(t, before, now())
	assert.Empty(t, issuer.Requests())

	issuer.Respond(second, credentials.Planted+"-rotated")
	c.Advance(time.Hour - credential.ExpiryLeeway)
	after := now()
	assert.Equal(t, "Bearer "+second, after.Authorization)
	assert.Same(t, after, now())
	issuer.Respond(third, "") // the refresh token stays
	c.Advance(time.Hour)
	assert.Equal(t, "Bearer "+third, now().Authorization)

	secret := map[string]string{"user": "kubectl", "password": credentials.Planted + "-client", "grant_type": "refresh_token", "scope": ""}
	with := func(refreshToken string) map[string]string {
		form := map[string]string{"refresh_token": refreshToken}
		for name, value := range secret {
			form[name] = value
		}
		return form
	}
	assert.Equal(t, []map[string]string{with(credentials.Planted + "-refresh"), with(credentials.Planted + "-rotated")}, issuer.Requests())
	assert.Equal(t, []string{second, credentials.Planted + "-rotated", third, credentials.Planted + "-rotated"}, saved)
}

func TestAuthenticator_RefreshesOpaqueIDToken(t *testing.T) {
	issuer := credentials.NewIssuer(t)
	c := credentials.NewClock()
	good := credentials.IDToken("ann", c.Now().Add(time.Hour))
	issuer.Respond(good, "")
	cfg := configOf(t, issuer)
	cfg.IDToken = "opaque"
	got, err := newAuthenticator(t, cfg, c).Credential(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "Bearer "+good, got.Authorization)
}

func TestAuthenticator_SendsClientSecretInForm(t *testing.T) {
	issuer := credentials.NewIssuer(t)
	c := credentials.NewClock()
	good := credentials.IDToken("ann", c.Now().Add(time.Hour))
	issuer.Token = func(w http.ResponseWriter, r *http.Request) {
		if r.PostFormValue("client_secret") != credentials.Planted+"-client" || r.PostFormValue("client_id") != "kubectl" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"a","id_token":%q}`, good)
	}
	a := newAuthenticator(t, configOf(t, issuer), c)
	got, err := a.Credential(t.Context())
	require.NoError(t, err)
	again, err := a.Renew(t.Context(), got)
	require.NoError(t, err)
	assert.Same(t, got, again, "the issuer gave the same token")
	assert.Len(t, issuer.Requests(), 3, "it is asked the wrong way once")
}

// respond returns a handler that always responds the same.
func respond(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}
}

func TestAuthenticator_IssuerErrorsHaveHintsNotSecrets(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s reached another host", r.URL)
	}))
	defer elsewhere.Close()
	redirect := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+"?"+credentials.Planted, http.StatusTemporaryRedirect)
	}
	old := credentials.IDToken(credentials.Planted, time.Now().Add(-time.Hour))
	const jsonType = "application/json"
	for name, tc := range map[string]struct {
		discover, token http.HandlerFunc
		want            string
	}{
		"no discovery":             {respond(404, "text/html", credentials.Planted), nil, "404 Not Found (is the issuer's URL right?)"},
		"discovery in HTML":        {respond(200, "text/html", "<html>"+credentials.Planted), nil, "has no token_endpoint"},
		"no endpoint":              {respond(200, jsonType, `{"issuer":"`+credentials.Planted+`"}`), nil, "has no token_endpoint"},
		"a plain endpoint":         {respond(200, jsonType, `{"token_endpoint":"http://id.example/token?`+credentials.Planted+`"}`), nil, "not https"},
		"a strange endpoint":       {respond(200, jsonType, `{"token_endpoint":"ftp://u:`+credentials.Planted+`@id.example"}`), nil, "https://host"},
		"discovery redirects":      {redirect, nil, "redirects to another host"},
		"discovery in a circle":    {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, nil, "in a circle"},
		"huge discovery":           {respond(200, jsonType, `{"a":"`+strings.Repeat(credentials.Planted, 1<<17)+`"}`), nil, "has no token_endpoint"},
		"the endpoint redirects":   {nil, redirect, "redirects to another host"},
		"a revoked token":          {nil, respond(400, jsonType, `{"error":"invalid_grant","error_description":"gone: `+credentials.Planted+`-refresh"}`), `"gone: …": the refresh token is no longer accepted (log in again`},
		"a wrong secret":           {nil, respond(401, jsonType, `{"error":"invalid_client"}`), "check the client's ID and secret"},
		"an error in 200":          {nil, respond(200, jsonType, `{"error":"server_error"}`), "server_error"},
		"an error in HTML":         {nil, respond(502, "text/html", credentials.Planted), "502 Bad Gateway"},
		"a response in HTML":       {nil, respond(200, "text/html", credentials.Planted), "no token of OAuth 2.0"},
		"an odd lifetime":          {nil, respond(200, jsonType, `{"access_token":"a","expires_in":"`+credentials.Planted+`"}`), "no token of OAuth 2.0"},
		"no access token":          {nil, respond(200, jsonType, `{"id_token":"`+credentials.Planted+`"}`), "no token of OAuth 2.0"},
		"no ID token":              {nil, respond(200, jsonType, `{"access_token":"`+credentials.Planted+`"}`), "the scope openid"},
		"an ID token of no string": {nil, respond(200, jsonType, `{"access_token":"a","id_token":["`+credentials.Planted+`"]}`), "the scope openid"},
		"an opaque ID token":       {nil, respond(200, jsonType, `{"access_token":"a","id_token":"`+credentials.Planted+`"}`), "not a JWT"},
		"two lines of ID token":    {nil, respond(200, jsonType, `{"access_token":"a","id_token":"`+strings.Replace(credentials.IDToken("ann", time.Now().Add(time.Hour)), ".", `.\n`+credentials.Planted, 2)+`"}`), "the issuer's response"},
		"an expired ID token":      {nil, respond(200, jsonType, `{"access_token":"a","id_token":"`+old+`"}`), "check this machine's clock"},
	} {
		t.Run(name, func(t *testing.T) {
			issuer := credentials.NewIssuer(t)
			c := credentials.NewClock()
			issuer.Discovery = tc.discover
			issuer.Token = tc.token
			_, err := newAuthenticator(t, configOf(t, issuer), c).Credential(t.Context())
			require.ErrorContains(t, err, tc.want)
			require.ErrorContains(t, err, "oidc: refresh the ID token")
			assert.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), credentials.Planted)
			assert.NotContains(t, err.Error(), old)
			assert.Less(t, len(err.Error()), 1000)
		})
	}
}

func TestAuthenticator_FollowsRedirectOnSameHost(t *testing.T) {
	issuer := credentials.NewIssuer(t)
	c := credentials.NewClock()
	issuer.Respond(credentials.IDToken("ann", c.Now().Add(time.Hour)), "")
	issuer.Discovery = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "" {
			http.Redirect(w, r, r.URL.Path+"?again", http.StatusFound)
			return
		}
		_, _ = fmt.Fprintf(w, `{"token_endpoint":%q}`, issuer.URL+"/token")
	}
	_, err := newAuthenticator(t, configOf(t, issuer), c).Credential(t.Context())
	require.NoError(t, err)
}

func TestAuthenticator_RejectsUntrustedIssuer(t *testing.T) {
	issuer := credentials.NewIssuer(t)
	cfg := configOf(t, issuer)
	other, _ := credentials.NewCertificate(t, "other", time.Now().Add(time.Hour))
	cfg.CA = credential.NewFile(other, "")
	_, err := newAuthenticator(t, cfg, credentials.NewClock()).Credential(t.Context())
	require.ErrorContains(t, err, "certificate")
	assert.NotContains(t, err.Error(), credentials.Planted)
	assert.Empty(t, issuer.Requests())
}

func TestAuthenticator_ExpiredWithoutRefreshToken(t *testing.T) {
	issuer := credentials.NewIssuer(t)
	c := credentials.NewClock()
	cfg := configOf(t, issuer)
	cfg.IDToken = credentials.IDToken("ann", c.Now().Add(time.Hour))
	cfg.RefreshToken = ""
	a := newAuthenticator(t, cfg, c)
	got, err := a.Credential(t.Context())
	require.NoError(t, err)
	_, err = a.Renew(t.Context(), got)
	require.ErrorContains(t, err, "no refresh token (log in again")
	again, err := a.Credential(t.Context())
	require.NoError(t, err)
	assert.Same(t, got, again, "a refusal may be for now only")
	c.Advance(time.Hour)
	_, err = a.Credential(t.Context())
	require.ErrorContains(t, err, "no refresh token (log in again")
}

func TestAuthenticator_CanceledCallerLeavesRefreshRunning(t *testing.T) {
	issuer := credentials.NewIssuer(t)
	c := credentials.NewClock()
	good := credentials.IDToken("ann", c.Now().Add(time.Hour))
	asked := make(chan struct{})
	respondNow := make(chan struct{})
	issuer.Token = func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-respondNow
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"a","id_token":%q,"refresh_token":"rotated"}`, good)
	}
	cfg := configOf(t, issuer)
	saved := make(chan string, 1)
	cfg.SaveTokens = func(ctx context.Context, _, refreshToken string) error {
		saved <- refreshToken
		return ctx.Err()
	}
	a := newAuthenticator(t, cfg, c)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := a.Credential(ctx)
		left <- err
	}()
	<-asked
	cancel()
	require.ErrorIs(t, <-left, context.Canceled)
	close(respondNow)
	assert.Equal(t, "rotated", <-saved)
	got, err := a.Credential(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "Bearer "+good, got.Authorization)
}

func TestAuthenticator_SaveErrorFailsOneRequest(t *testing.T) {
	issuer := credentials.NewIssuer(t)
	c := credentials.NewClock()
	good := credentials.IDToken("ann", c.Now().Add(time.Hour))
	issuer.Respond(good, credentials.Planted+"-rotated")
	cfg := configOf(t, issuer)
	readOnly := errors.New("read-only")
	cfg.SaveTokens = func(context.Context, string, string) error { return readOnly }
	a := newAuthenticator(t, cfg, c)
	_, err := a.Credential(t.Context())
	require.ErrorIs(t, err, readOnly)
	assert.NotContains(t, err.Error(), credentials.Planted)
	got, err := a.Credential(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "Bearer "+good, got.Authorization)
	assert.Len(t, issuer.Requests(), 1)
}

func TestAuthenticator_SavesRefreshTokenWithoutIDToken(t *testing.T) {
	issuer := credentials.NewIssuer(t)
	c := credentials.NewClock()
	issuer.Token = respond(200, "application/json", `{"access_token":"a","refresh_token":"rotated"}`)
	cfg := configOf(t, issuer)
	var saved string
	cfg.SaveTokens = func(_ context.Context, _, refreshToken string) error {
		saved = refreshToken
		return nil
	}
	_, err := newAuthenticator(t, cfg, c).Credential(t.Context())
	require.ErrorContains(t, err, "no id_token")
	assert.Equal(t, "rotated", saved)
}

func claims(json string) string {
	return "h." + base64.RawURLEncoding.EncodeToString([]byte(json)) + ".s"
}

func TestParseExpiry_Claims(t *testing.T) {
	for token, want := range map[string]int64{
		claims(`{"exp":1700000000}`):           1700000000,
		claims(`{"exp":1.7e9}`):                1700000000,
		claims(`{"exp":1700000000.75}`):        1700000000,
		claims(`{"exp":9e99}`):                 maxExpiry,
		claims(`{"exp":1700000000}`) + "\n":    1700000000,
		"h.eyJleHAiOjE3MDAwMDAwMDAgIH0==.sig":  1700000000, // padded
		claims(`{"sub":"ann","exp":17}`) + "_": 17,
	} {
		expires, err := parseExpiry(token)
		require.NoError(t, err, token)
		assert.Equal(t, want, expires.Unix(), token)
	}
	for name, token := range map[string]string{
		"nothing": "", "opaque": credentials.Planted, "two parts": "a.b", "four parts": "a.b.c.d", "no base64": "a.!" + credentials.Planted + ".c",
		"no JSON": claims(credentials.Planted), "a list": claims(`[1]`), "no claim": claims(`{"sub":"` + credentials.Planted + `"}`), "null": claims(`{"exp":null}`),
		"a word": claims(`{"exp":"` + credentials.Planted + `"}`), "zero": claims(`{"exp":0}`), "before time": claims(`{"exp":-1}`), "too much": claims(`{"exp":1e999}`),
	} {
		_, err := parseExpiry(token)
		if assert.Error(t, err, name) {
			assert.NotContains(t, err.Error(), credentials.Planted, name)
			assert.Contains(t, err.Error(), "log in again", name)
		}
	}
}

func FuzzParseExpiry(f *testing.F) {
	f.Add("", credentials.IDToken("ann", time.Unix(1700000000, 0)))
	f.Add(`{"exp":1.7e9}`, "")
	f.Add(`{"exp":1e308}`, "a.b.c")
	f.Fuzz(func(t *testing.T, payload, token string) {
		if payload != "" {
			token = claims(payload)
		}
		expires, err := parseExpiry(token)
		if err != nil {
			assert.True(t, expires.IsZero())
			return
		}
		assert.GreaterOrEqual(t, expires.Unix(), int64(0))
		assert.LessOrEqual(t, expires.Unix(), int64(maxExpiry))
	})
}
