package transport

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
)

// refreshLimit is how long a refresh may take, also when nobody waits for it any more.
const refreshLimit = time.Minute

// oidcAuthenticator asks with an ID token that it renews, and with the config's client certificate where there is one.
// It is safe for concurrent use.
type oidcAuthenticator struct {
	tokens      *sharedIdentity
	certificate *fileAuthenticator
	oidc        *OIDC
	roots       *renewedFile
	oauth       *oauth2.Config // remembers how the issuer wants the client's secret
	// refreshToken and idToken are the latest; only obtain uses them, which runs once at a time.
	refreshToken, idToken string
	// stored is the refresh token that was last seen or saved where OIDC.Load finds it: ours may be newer, if saving it
	// failed.
	stored string

	mu sync.Mutex
	// whole is token and the certificate in one.
	whole, token *identity
}

func newOIDCAuthenticator(cfg *Config) (authenticator, error) {
	a := &oidcAuthenticator{oidc: cfg.OIDC.clone(), roots: inlineOrFile(cfg.OIDC.CAData, cfg.OIDC.CAFile)}
	a.refreshToken, a.idToken = a.oidc.RefreshToken.Reveal(), a.oidc.IDToken.Reveal()
	a.stored = a.refreshToken
	a.oauth = &oauth2.Config{ClientID: a.oidc.ClientID, ClientSecret: a.oidc.ClientSecret.Reveal()}
	a.tokens = &sharedIdentity{what: "a new OIDC token", obtain: a.obtain, finishes: true, now: time.Now}
	if err := a.check(); err != nil {
		return nil, fmt.Errorf("oidc: %w", err)
	}
	var err error
	a.certificate, err = newFileAuthenticator(cfg)
	return a, err
}

// check finds out what cannot work, and takes the ID token for as long as it lasts.
func (a *oidcAuthenticator) check() error {
	if a.oidc.Issuer == "" || a.oidc.ClientID == "" {
		return errors.New("the issuer's URL and the client's ID are needed (idp-issuer-url and client-id)")
	}
	if strings.ContainsAny(a.oidc.Issuer, "?#") {
		return fmt.Errorf("the issuer's URL (idp-issuer-url) %q has a query or a fragment: leave them out", withoutSecrets(a.oidc.Issuer))
	}
	if _, err := secureURL(a.oidc.Issuer); err != nil {
		return fmt.Errorf("the issuer's URL (idp-issuer-url) %w", err)
	}
	if _, err := a.client(); err != nil {
		return err
	}
	if a.idToken == "" && a.refreshToken == "" {
		return errors.New("there is neither an ID token nor a refresh token: log in with the provider's own tool first")
	}
	if a.idToken == "" {
		return nil
	}
	authorization, expires, err := readIDToken(a.idToken)
	if err == nil {
		a.tokens.current, a.tokens.expires = &identity{authorization: authorization}, expires
	}
	if a.refreshToken == "" {
		return err
	}
	return nil // what cannot be read is replaced
}

func (a *oidcAuthenticator) identity(ctx context.Context) (*identity, error) {
	token, err := a.tokens.identity(ctx)
	if err != nil {
		return nil, err
	}
	return a.withCertificate(ctx, token)
}

func (a *oidcAuthenticator) renew(ctx context.Context, refused *identity) (*identity, error) {
	token, err := a.tokens.renew(ctx, &identity{authorization: refused.authorization})
	if err != nil {
		return nil, err
	}
	return a.withCertificate(ctx, token)
}

// withCertificate makes a new identity only when one of its halves has changed.
func (a *oidcAuthenticator) withCertificate(ctx context.Context, token *identity) (*identity, error) {
	shown, err := a.certificate.identity(ctx)
	if err != nil {
		return nil, err
	}
	if shown.certificate == nil {
		return token, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.whole == nil || a.token != token || a.whole.certificate != shown.certificate {
		a.whole, a.token = &identity{
			authorization: token.authorization, certificate: shown.certificate, renewed: token.renewed, accepted: token.accepted,
		}, token
	}
	return a.whole, nil
}

// obtain refreshes the ID token.
func (a *oidcAuthenticator) obtain(ctx context.Context) (*identity, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, refreshLimit)
	defer cancel()
	if who, expires, ok := a.adoptStored(ctx); ok {
		return who, expires, nil
	}
	before := a.refreshToken
	who, expires, err := a.refresh(ctx)
	if err != nil && a.refreshToken == before {
		if stored, storedExpires, ok := a.adoptStored(ctx); ok {
			return stored, storedExpires, nil
		}
		if a.refreshToken != before { // somebody else was faster
			before = a.refreshToken
			who, expires, err = a.refresh(ctx)
		}
	}
	if err != nil {
		err = fmt.Errorf("oidc: refresh the ID token: %w", err)
	}
	if a.oidc.Save == nil || (err != nil && a.refreshToken == before) {
		return who, expires, err
	}
	if failed := a.oidc.Save(ctx, a.idToken, a.refreshToken); failed != nil {
		failed = fmt.Errorf("oidc: save the refreshed tokens, without which those saved before may no longer work: %w", failed)
		if err != nil {
			failed = fmt.Errorf("%w; %w", err, failed)
		}
		return who, expires, failed
	}
	a.stored = a.refreshToken
	return who, expires, err
}

// adoptStored takes over tokens that another program has stored since. ok reports that their ID token is another one than
// ours and can be used.
func (a *oidcAuthenticator) adoptStored(ctx context.Context) (who *identity, expires time.Time, ok bool) {
	if a.oidc.Load == nil {
		return nil, time.Time{}, false
	}
	idToken, refreshToken, err := a.oidc.Load(ctx)
	if err != nil || refreshToken == "" || refreshToken == a.stored {
		return nil, time.Time{}, false
	}
	before := a.idToken
	a.stored, a.refreshToken, a.idToken = refreshToken, refreshToken, idToken
	authorization, expires, err := readIDToken(idToken)
	if err != nil || idToken == before || !a.tokens.now().Add(expiryLeeway).Before(expires) {
		return nil, time.Time{}, false
	}
	return &identity{authorization: authorization}, expires, true
}
