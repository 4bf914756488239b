package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func oidcAuthenticatorOf(t *testing.T, cfg *Config, c *clock) *oidcAuthenticator {
	t.Helper()
	made, err := newOIDCAuthenticator(cfg)
	require.NoError(t, err)
	a := made.(*oidcAuthenticator)
	a.tokens.now = c.now
	return a
}

func openOIDC(t *testing.T, cfg *Config, c *clock) *Conn {
	t.Helper()
	conn, err := Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	conn.who.(*oidcAuthenticator).tokens.now = c.now
	return conn
}

func TestAnIDTokenIsUsedUntilItExpiresAndThenRefreshed(t *testing.T) {
	issuer, c := newFakeIssuer(t), newClock()
	first, second, third := jwtUntil("1", c.now().Add(time.Hour)), jwtUntil("2", c.now().Add(2*time.Hour)), jwtUntil("3", c.now().Add(3*time.Hour))
	oidc := issuer.oidc()
	oidc.IDToken = NewSecret(first)
	var saved []string
	oidc.Save = func(_ context.Context, idToken, refreshToken string) error {
		saved = append(saved, idToken, refreshToken)
		return nil
	}
	a := oidcAuthenticatorOf(t, &Config{OIDC: oidc}, c)
	now := func() *identity {
		who, err := a.identity(t.Context())
		require.NoError(t, err)
		return who
	}
	before := now()
	assert.Equal(t, "Bearer "+first, before.authorization)
	assert.Same(t, before, now())
	assert.Empty(t, issuer.got())

	issuer.give(second, planted+"-rotated")
	c.advance(time.Hour - expiryLeeway)
	after := now()
	assert.Equal(t, "Bearer "+second, after.authorization)
	assert.Same(t, after, now())
	issuer.give(third, "") // the refresh token stays
	c.advance(time.Hour)
	assert.Equal(t, "Bearer "+third, now().authorization)

	secret := map[string]string{"user": "kubectl", "password": planted + "-client", "grant_type": "refresh_token", "scope": ""}
	with := func(refreshToken string) map[string]string {
		form := map[string]string{"refresh_token": refreshToken}
		for name, value := range secret {
			form[name] = value
		}
		return form
	}
	assert.Equal(t, []map[string]string{with(planted + "-refresh"), with(planted + "-rotated")}, issuer.got())
	assert.Equal(t, []string{second, planted + "-rotated", third, planted + "-rotated"}, saved)
}

func TestAnIDTokenThatCannotBeReadIsRefreshed(t *testing.T) {
	issuer, c := newFakeIssuer(t), newClock()
	good := jwtUntil("ann", c.now().Add(time.Hour))
	issuer.give(good, "")
	oidc := issuer.oidc()
	oidc.IDToken = NewSecret("opaque")
	who, err := oidcAuthenticatorOf(t, &Config{OIDC: oidc}, c).identity(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "Bearer "+good, who.authorization)
}

func TestAnIssuerThatWantsTheSecretInTheFormGetsItThere(t *testing.T) {
	issuer, c := newFakeIssuer(t), newClock()
	good := jwtUntil("ann", c.now().Add(time.Hour))
	issuer.token = func(w http.ResponseWriter, r *http.Request) {
		if r.PostFormValue("client_secret") != planted+"-client" || r.PostFormValue("client_id") != "kubectl" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"a","id_token":%q}`, good)
	}
	a := oidcAuthenticatorOf(t, &Config{OIDC: issuer.oidc()}, c)
	who, err := a.identity(t.Context())
	require.NoError(t, err)
	again, err := a.renew(t.Context(), who)
	require.NoError(t, err)
	assert.Same(t, who, again, "the issuer gave the same token")
	assert.Len(t, issuer.got(), 3, "it is asked the wrong way once")
}

// answering is a token endpoint that always answers the same.
func answering(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}
}

func TestAnIssuersFailureSaysWhatToDoAndShowsNoSecret(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s reached another host", r.URL)
	}))
	defer elsewhere.Close()
	redirect := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+"?"+planted, http.StatusTemporaryRedirect)
	}
	old := jwtUntil(planted, time.Now().Add(-time.Hour))
	const jsonType = "application/json"
	for name, tc := range map[string]struct {
		discover, token http.HandlerFunc
		says            string
	}{
		"no discovery":             {answering(404, "text/html", planted), nil, "404 Not Found: is the issuer's URL right?"},
		"discovery in HTML":        {answering(200, "text/html", "<html>"+planted), nil, "names no token_endpoint"},
		"no endpoint":              {answering(200, jsonType, `{"issuer":"`+planted+`"}`), nil, "names no token_endpoint"},
		"a plain endpoint":         {answering(200, jsonType, `{"token_endpoint":"http://id.example/token?`+planted+`"}`), nil, "must be https"},
		"a strange endpoint":       {answering(200, jsonType, `{"token_endpoint":"ftp://u:`+planted+`@id.example"}`), nil, "https://host"},
		"discovery redirects":      {redirect, nil, "redirects to another host"},
		"discovery in a circle":    {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, nil, "in a circle"},
		"huge discovery":           {answering(200, jsonType, `{"a":"`+strings.Repeat(planted, 1<<17)+`"}`), nil, "names no token_endpoint"},
		"the endpoint redirects":   {nil, redirect, "redirects to another host"},
		"a revoked token":          {nil, answering(400, jsonType, `{"error":"invalid_grant","error_description":"gone: `+planted+`-refresh"}`), `"gone: …": the refresh token is no longer accepted: log in again`},
		"a wrong secret":           {nil, answering(401, jsonType, `{"error":"invalid_client"}`), "check the client's ID and secret"},
		"an error in 200":          {nil, answering(200, jsonType, `{"error":"server_error"}`), "server_error"},
		"an error in HTML":         {nil, answering(502, "text/html", planted), "502 Bad Gateway"},
		"an answer in HTML":        {nil, answering(200, "text/html", planted), "no token of OAuth 2.0"},
		"an odd lifetime":          {nil, answering(200, jsonType, `{"access_token":"a","expires_in":"`+planted+`"}`), "no token of OAuth 2.0"},
		"no access token":          {nil, answering(200, jsonType, `{"id_token":"`+planted+`"}`), "no token of OAuth 2.0"},
		"no ID token":              {nil, answering(200, jsonType, `{"access_token":"`+planted+`"}`), "the scope openid"},
		"an ID token of no string": {nil, answering(200, jsonType, `{"access_token":"a","id_token":["`+planted+`"]}`), "the scope openid"},
		"an opaque ID token":       {nil, answering(200, jsonType, `{"access_token":"a","id_token":"`+planted+`"}`), "no JWT"},
		"two lines of ID token":    {nil, answering(200, jsonType, `{"access_token":"a","id_token":"`+strings.Replace(jwtUntil("ann", time.Now().Add(time.Hour)), ".", `.\n`+planted, 2)+`"}`), "the issuer's answer"},
		"an expired ID token":      {nil, answering(200, jsonType, `{"access_token":"a","id_token":"`+old+`"}`), "check this machine's clock"},
	} {
		t.Run(name, func(t *testing.T) {
			issuer, c := newFakeIssuer(t), newClock()
			issuer.discover, issuer.token = tc.discover, tc.token
			conn := openOIDC(t, &Config{Server: "https://127.0.0.1:1", OIDC: issuer.oidc()}, c)
			_, err := conn.Do(t.Context(), &Request{Path: "/version"})
			require.ErrorContains(t, err, tc.says)
			require.ErrorContains(t, err, "GET https://127.0.0.1:1/version: oidc: refresh the ID token")
			assert.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), planted)
			assert.NotContains(t, err.Error(), old)
			assert.Less(t, len(err.Error()), 1000)
		})
	}
}

func TestAnIssuerMayRedirectOnItsOwnHost(t *testing.T) {
	issuer, c := newFakeIssuer(t), newClock()
	issuer.give(jwtUntil("ann", c.now().Add(time.Hour)), "")
	issuer.discover = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "" {
			http.Redirect(w, r, r.URL.Path+"?again", http.StatusFound)
			return
		}
		_, _ = fmt.Fprintf(w, `{"token_endpoint":%q}`, issuer.URL+"/token")
	}
	_, err := oidcAuthenticatorOf(t, &Config{OIDC: issuer.oidc()}, c).identity(t.Context())
	require.NoError(t, err)
}

func TestAnIssuerOfAnotherAuthorityIsRefused(t *testing.T) {
	issuer := newFakeIssuer(t)
	oidc := issuer.oidc()
	oidc.CAData, _ = pairUntil(t, "other", time.Now().Add(time.Hour))
	_, err := oidcAuthenticatorOf(t, &Config{OIDC: oidc}, newClock()).identity(t.Context())
	require.ErrorContains(t, err, "certificate")
	assert.NotContains(t, err.Error(), planted)
	assert.Empty(t, issuer.got())
}

func TestAnExpiredIDTokenWithoutARefreshTokenNeedsALogIn(t *testing.T) {
	issuer, c := newFakeIssuer(t), newClock()
	oidc := issuer.oidc()
	oidc.IDToken, oidc.RefreshToken = NewSecret(jwtUntil("ann", c.now().Add(time.Hour))), NewSecret("")
	a := oidcAuthenticatorOf(t, &Config{OIDC: oidc}, c)
	who, err := a.identity(t.Context())
	require.NoError(t, err)
	_, err = a.renew(t.Context(), who)
	require.ErrorContains(t, err, "no refresh token: log in again")
	again, err := a.identity(t.Context())
	require.NoError(t, err)
	assert.Same(t, who, again, "a refusal may be for now only")
	c.advance(time.Hour)
	_, err = a.identity(t.Context())
	require.ErrorContains(t, err, "no refresh token: log in again")
}

func TestAfterA401TheIDTokenIsRefreshedOnce(t *testing.T) {
	c := newClock()
	first, second := jwtUntil("1", c.now().Add(time.Hour)), jwtUntil("2", c.now().Add(time.Hour))
	for name, tc := range map[string]struct {
		accepted string
		ok       bool
	}{"that one is accepted": {second, true}, "that one is refused": {"none", false}} {
		t.Run(name, func(t *testing.T) {
			issuer := newFakeIssuer(t)
			issuer.give(second, "")
			cfg := serveClients(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer "+tc.accepted {
					w.WriteHeader(http.StatusUnauthorized)
				}
			})
			cfg.OIDC = issuer.oidc()
			cfg.OIDC.IDToken = NewSecret(first)
			response, err := openOIDC(t, cfg, c).Do(t.Context(), &Request{Path: "/"})
			if tc.ok {
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
			} else {
				assert.True(t, apierrors.IsUnauthorized(err), "%v", err)
				assert.NotContains(t, err.Error(), second)
			}
			assert.Len(t, issuer.got(), 1)
		})
	}
}

func TestRequestsAtTheSameTimeShareARefresh(t *testing.T) {
	issuer, c := newFakeIssuer(t), newClock()
	issuer.give(jwtUntil("ann", c.now().Add(time.Hour)), planted+"-rotated")
	cfg := serveClients(t, func(http.ResponseWriter, *http.Request) {})
	cfg.OIDC = issuer.oidc()
	conn := openOIDC(t, cfg, c)
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			response, err := conn.Do(t.Context(), &Request{Path: "/"})
			if assert.NoError(t, err) {
				assert.NoError(t, response.Body.Close())
			}
		})
	}
	wait.Wait()
	assert.Len(t, issuer.got(), 1)
}

func TestARefreshGoesOnWhenItsCallerLeavesSoThatARotatedTokenIsNotLost(t *testing.T) {
	issuer, c := newFakeIssuer(t), newClock()
	good := jwtUntil("ann", c.now().Add(time.Hour))
	asked, answer := make(chan struct{}), make(chan struct{})
	issuer.token = func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-answer
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"a","id_token":%q,"refresh_token":"rotated"}`, good)
	}
	oidc := issuer.oidc()
	saved := make(chan string, 1)
	oidc.Save = func(ctx context.Context, _, refreshToken string) error {
		saved <- refreshToken
		return ctx.Err()
	}
	a := oidcAuthenticatorOf(t, &Config{OIDC: oidc}, c)
	ctx, cancel := context.WithCancel(t.Context())
	left := a.tokens.ask(ctx)
	<-asked
	cancel()
	require.ErrorIs(t, (<-left).err, context.Canceled)
	close(answer)
	assert.Equal(t, "rotated", <-saved)
	who, err := a.identity(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "Bearer "+good, who.authorization)
}

func TestTokensThatCannotBeSavedFailTheRequestThatRefreshedThemOnly(t *testing.T) {
	issuer, c := newFakeIssuer(t), newClock()
	good := jwtUntil("ann", c.now().Add(time.Hour))
	issuer.give(good, planted+"-rotated")
	oidc := issuer.oidc()
	readOnly := errors.New("read-only")
	oidc.Save = func(context.Context, string, string) error { return readOnly }
	a := oidcAuthenticatorOf(t, &Config{OIDC: oidc}, c)
	_, err := a.identity(t.Context())
	require.ErrorIs(t, err, readOnly)
	assert.NotContains(t, err.Error(), planted)
	who, err := a.identity(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "Bearer "+good, who.authorization)
	assert.Len(t, issuer.got(), 1)
}

func TestARotatedRefreshTokenIsSavedEvenWithoutAnIDToken(t *testing.T) {
	issuer, c := newFakeIssuer(t), newClock()
	issuer.token = answering(200, "application/json", `{"access_token":"a","refresh_token":"rotated"}`)
	oidc := issuer.oidc()
	var saved string
	oidc.Save = func(_ context.Context, _, refreshToken string) error {
		saved = refreshToken
		return nil
	}
	_, err := oidcAuthenticatorOf(t, &Config{OIDC: oidc}, c).identity(t.Context())
	require.ErrorContains(t, err, "no id_token")
	assert.Equal(t, "rotated", saved)
}

func TestAClientCertificateIsShownBesidesTheIDToken(t *testing.T) {
	issuer, c := newFakeIssuer(t), newClock()
	first, second := jwtUntil("1", c.now().Add(time.Hour)), jwtUntil("2", c.now().Add(time.Hour))
	issuer.give(second, "")
	cfg := serveClients(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+second {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = fmt.Fprint(w, shownName(r))
	})
	certificate, key := pairUntil(t, "ann", time.Now().Add(time.Hour))
	cfg.CertData, cfg.KeyData = certificate, NewSecret(string(key))
	cfg.OIDC = issuer.oidc()
	cfg.OIDC.IDToken = NewSecret(first)
	conn := openOIDC(t, cfg, c)
	assert.Equal(t, "ann", bodyOf(t, conn, &Request{Path: "/"}))
	one, err := conn.who.identity(t.Context())
	require.NoError(t, err)
	two, err := conn.who.identity(t.Context())
	require.NoError(t, err)
	assert.Same(t, one, two)
	assert.Len(t, issuer.got(), 1)
}
