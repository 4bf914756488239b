package transport

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
)

// OIDC is a user of an OpenID Connect provider, whose ID token is the bearer token:
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#openid-connect-tokens. It is what a
// kubeconfig's auth-provider "oidc" holds; that one's extra-scopes are not needed, as a refresh keeps the scopes of
// the log-in.
//
// The ID token is used until it expires or the server answers 401. Then the refresh token gets a new one from the
// issuer, once for all requests that need one at that time. A refresh that began goes on for up to a minute when
// nobody waits for it any more: the issuer may already have replaced the refresh token.
type OIDC struct {
	// Issuer is the provider's URL, below which /.well-known/openid-configuration says where tokens are refreshed.
	// Both must be https, or http on this machine. Redirects to other hosts are not followed.
	Issuer string
	// ClientID and ClientSecret are those of the log-in; a public client has no secret.
	ClientID     string
	ClientSecret Secret
	// IDToken may be missing or expired where there is a RefreshToken, which may be missing until then.
	IDToken, RefreshToken Secret
	// CAFile and CAData hold the PEM certificates that sign the issuer's; with neither, the system's roots do.
	CAFile string
	CAData []byte
	// Load, if any, returns the tokens that are stored now, where other programs that refresh them save theirs too. It is
	// called before a refresh, and again if the issuer refuses the refresh token: most issuers accept each one once, and
	// some revoke all if one is used twice. An error of Load means that there are none.
	Load func(ctx context.Context) (idToken, refreshToken string, err error)
	// Save is called after each refresh with the tokens that replace the ones above, of which one may be the same as
	// before, so that whoever reads them from the same place next does not find them outdated. Its ctx has a
	// deadline, and the calls come one after the other. Its error fails the requests that wait for the refresh; those
	// after them go on with the new tokens. nil keeps the tokens in memory only.
	Save func(ctx context.Context, idToken, refreshToken string) error
}

// String describes the user without tokens and secrets.
func (o OIDC) String() string { return o.LogValue().String() }

// Format implements fmt.Formatter with what String returns, for every verb.
func (o OIDC) Format(state fmt.State, _ rune) { printSafe(state, o) }

// MarshalJSON implements json.Marshaler with what String returns.
func (o OIDC) MarshalJSON() ([]byte, error) { return safeJSON(o) }

// LogValue implements slog.LogValuer, with what String shows.
func (o OIDC) LogValue() slog.Value {
	return slog.GroupValue(slog.String("issuer", withoutSecrets(o.Issuer)), slog.String("client", o.ClientID),
		slog.Bool("id token", !o.IDToken.IsZero()), slog.Bool("refresh token", !o.RefreshToken.IsZero()))
}

// clone shares nothing with o.
func (o *OIDC) clone() *OIDC {
	own := *o
	own.CAData = bytes.Clone(o.CAData)
	return &own
}
