// Package oidc authenticates with an ID token of an OpenID Connect provider, and refreshes it:
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#openid-connect-tokens.
//
// An [Authenticator] is a [credential.Cache] whose Fetch refreshes the ID token (refresh.go), plus an optional client
// certificate. A refresh has these steps. Load the stored tokens, possibly updated by a different program: a new and fresh ID
// token is used. Otherwise request the issuer's token endpoint and exchange the refresh token there. If the issuer rejects the
// refresh token, load the stored tokens once more: a different program may have been faster. Last, save.
//
// Invariants: most issuers accept a refresh token once. A started refresh therefore completes, and the newest refresh token is
// kept and saved even if the response has no usable ID token. Secrets go only to https or loopback URLs on the issuer's hosts,
// never to a different host by a redirect, and no error shows a secret. Responses are read up to 1 MiB; no connection is kept
// between refreshes.
package oidc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/anykind/anykind/internal/sanitize"
	"github.com/anykind/anykind/transport/internal/credential"
)

// refreshTimeout limits a refresh, including a refresh without waiting requests.
const refreshTimeout = time.Minute

// Config is the user of an issuer.
type Config struct {
	Issuer, ClientID, ClientSecret string
	IDToken, RefreshToken          string
	CA                             *credential.File // of the issuer's certificate; empty means the system's roots
	Certificate                    credential.Authenticator

	// LoadTokens and SaveTokens may be nil; see transport.OIDC.
	LoadTokens func(ctx context.Context) (idToken, refreshToken string, err error)
	SaveTokens func(ctx context.Context, idToken, refreshToken string) error
}

// Authenticator authenticates with an ID token, and with an optional client certificate.
type Authenticator struct {
	cfg    Config
	tokens *credential.Cache
	oauth  *oauth2.Config // remembers the issuer's authentication style for the client secret
	// refreshToken and idToken are the newest tokens. Only fetch uses them, and fetches are sequential.
	refreshToken, idToken string
	// stored and storedIDToken are the last tokens of LoadTokens or SaveTokens. refreshToken and idToken are newer if saving failed.
	stored, storedIDToken string

	mu sync.Mutex
	// combined is token with the certificate.
	combined, token *credential.Credential
}

// New validates cfg and uses its ID token until the token expires.
func New(cfg Config) (*Authenticator, error) {
	a := &Authenticator{
		cfg: cfg, refreshToken: cfg.RefreshToken, idToken: cfg.IDToken, stored: cfg.RefreshToken, storedIDToken: cfg.IDToken,
		oauth: &oauth2.Config{ClientID: cfg.ClientID, ClientSecret: cfg.ClientSecret},
	}
	a.tokens = &credential.Cache{Name: "a new OIDC token", Fetch: a.fetch, MustComplete: true, Now: time.Now}
	if err := a.validate(); err != nil {
		return nil, fmt.Errorf("oidc: %w", err)
	}
	return a, nil
}

func (a *Authenticator) validate() error {
	if a.cfg.Issuer == "" || a.cfg.ClientID == "" {
		return errors.New("the issuer's URL and the client's ID are needed (idp-issuer-url and client-id)")
	}
	if strings.ContainsAny(a.cfg.Issuer, "?#") {
		return fmt.Errorf("issuer URL (idp-issuer-url) %q: it has a query or a fragment (leave them out)", sanitize.URL(a.cfg.Issuer))
	}
	if err := checkURL(a.cfg.Issuer); err != nil {
		return fmt.Errorf("issuer URL (idp-issuer-url) %w", err)
	}
	if _, err := a.client(); err != nil {
		return err
	}
	if a.idToken == "" && a.refreshToken == "" {
		return errors.New("there is neither an ID token nor a refresh token (log in with the provider's own tool first)")
	}
	current, err := parseIDToken(a.idToken)
	switch {
	case err == nil:
		a.tokens.Set(current)
	case a.refreshToken == "": // otherwise an invalid ID token is refreshed
		return err
	}
	return nil
}

// Credential implements [credential.Authenticator].
func (a *Authenticator) Credential(ctx context.Context) (*credential.Credential, error) {
	token, err := a.tokens.Credential(ctx)
	return a.withCertificate(ctx, token, err)
}

// Renew implements [credential.Authenticator].
func (a *Authenticator) Renew(ctx context.Context, rejected *credential.Credential) (*credential.Credential, error) {
	token, err := a.tokens.Renew(ctx, rejected.WithCertificate(nil))
	return a.withCertificate(ctx, token, err)
}

// withCertificate returns the same credential until the token or the certificate has changed.
func (a *Authenticator) withCertificate(ctx context.Context, token *credential.Credential, err error) (*credential.Credential, error) {
	if err != nil {
		return nil, err
	}
	pair, err := a.cfg.Certificate.Credential(ctx)
	if err != nil || pair.Certificate == nil {
		return token, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.combined == nil || a.token != token || a.combined.Certificate != pair.Certificate {
		a.combined = token.WithCertificate(pair.Certificate)
		a.token = token
	}
	return a.combined, nil
}

// fetch refreshes the ID token, and loads and saves the tokens.
func (a *Authenticator) fetch(ctx context.Context) (*credential.Credential, error) {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	if loaded := a.load(ctx); loaded != nil {
		return loaded, nil
	}
	before := a.refreshToken
	fetched, err := a.refresh(ctx)
	if err != nil && a.refreshToken == before {
		if loaded := a.load(ctx); loaded != nil {
			return loaded, nil
		}
		if a.refreshToken != before { // a different program was faster
			before = a.refreshToken
			fetched, err = a.refresh(ctx)
		}
	}
	if err != nil {
		err = fmt.Errorf("oidc: refresh the ID token: %w", err)
	}
	if a.cfg.SaveTokens == nil || (err != nil && a.refreshToken == before) {
		return fetched, err
	}
	if saveErr := a.cfg.SaveTokens(ctx, a.idToken, a.refreshToken); saveErr != nil {
		saveErr = fmt.Errorf("oidc: save the refreshed tokens (the saved tokens may no longer work): %w", saveErr)
		if err != nil {
			saveErr = fmt.Errorf("%w; %w", err, saveErr)
		}
		return fetched, saveErr
	}
	a.stored = a.refreshToken
	a.storedIDToken = a.idToken
	return fetched, err
}

// load takes over the stored tokens if they changed. It returns nil unless their ID token is new and fresh.
func (a *Authenticator) load(ctx context.Context) *credential.Credential {
	if a.cfg.LoadTokens == nil {
		return nil
	}
	idToken, refreshToken, err := a.cfg.LoadTokens(ctx)
	if err != nil {
		return nil
	}
	isNew := idToken != a.storedIDToken && idToken != a.idToken
	a.storedIDToken = idToken
	if refreshToken != "" && refreshToken != a.stored { // an issuer may keep the refresh token, or issue none
		a.stored = refreshToken
		a.refreshToken = refreshToken
		a.idToken = idToken
	}
	loaded, err := parseIDToken(idToken)
	if err != nil || !isNew || !a.tokens.IsFresh(loaded.Expires) {
		return nil
	}
	a.idToken = idToken
	return loaded
}
