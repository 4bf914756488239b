package transport

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"sync/atomic"
	"time"
)

// identity is who asks: the value of the Authorization header, and a client certificate. Either may be missing, and
// both are for an anonymous request. But for accepted it is immutable: whoever asks with the same credential gets the same pointer.
type identity struct {
	authorization string
	certificate   *tls.Certificate

	// renewed is when it took the place of one that a server refused, the zero time if it did not.
	renewed time.Time
	// accepted is set once a server has answered a request with it otherwise than by 401; nil if nobody asks.
	accepted *atomic.Bool
}

// markAccepted notes that a server has accepted the identity.
func (i *identity) markAccepted() {
	if i != nil && i.accepted != nil {
		i.accepted.Store(true)
	}
}

// wasAccepted reports whether a server is known to have accepted the identity.
func (i *identity) wasAccepted() bool { return i.accepted != nil && i.accepted.Load() }

// authenticator knows who asks. It is safe for concurrent use.
type authenticator interface {
	// identity is the one to ask with now. It may read files, run a program or ask an issuer, while ctx lasts.
	identity(ctx context.Context) (*identity, error)
	// renew is called when the server did not accept an identity, and returns one to ask with instead, or the
	// same where there is no other.
	renew(ctx context.Context, refused *identity) (*identity, error)
}

// newAuthenticator picks the one kind of credential that the config has. As in kubectl, what is written down wins
// over a plugin.
func newAuthenticator(cfg *Config) (authenticator, error) {
	hasToken, hasBasic := !cfg.Token.IsZero() || cfg.TokenFile != "", cfg.Username != "" || !cfg.Password.IsZero()
	hasCertificate := len(cfg.CertData) > 0 || cfg.CertFile != ""
	switch {
	case hasToken && hasBasic:
		return nil, errors.New("a token and a user name exclude each other: drop one")
	case cfg.Exec != nil && cfg.OIDC != nil:
		return nil, errors.New("an exec plugin and OIDC exclude each other: drop one")
	case cfg.Impersonate.User == "" && len(impersonationHeader(cfg.Impersonate)) > 0:
		return nil, errors.New("impersonating a uid, groups or extras needs a user to impersonate")
	case !hasToken && !hasBasic && !hasCertificate && cfg.Exec != nil:
		return newExecAuthenticator(cfg)
	case !hasToken && !hasBasic && cfg.OIDC != nil:
		return newOIDCAuthenticator(cfg)
	default:
		return newFileAuthenticator(cfg)
	}
}

func bearer(token string) string { return "Bearer " + token }

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}
