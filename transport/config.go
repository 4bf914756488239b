package transport

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/anykind/anykind/internal/sanitize"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// Config is the address of an API server and the credential for it. The zero value of every field but Server is a valid
// default. Inline data wins over the file of the same name. It is a plain value: copying it is cheap, and changing it after
// [Open] changes nothing.
type Config struct {
	// Server is the API server's URL, with a path if one precedes /api: https://host:6443/prefix.
	Server string
	Options

	// CAFile and CAData hold the PEM certificates that sign the server's; with neither, the system's roots do. This
	// file and the next two are read again every minute, as programs that rotate certificates expect.
	CAFile string
	CAData []byte
	// ServerName is the name that the server's certificate must have, if it is not the URL's host.
	ServerName string
	// Insecure accepts any server certificate.
	Insecure bool

	// CertFile, CertData, KeyFile and KeyData are the client's PEM certificate and key.
	CertFile, KeyFile string
	CertData          []byte
	KeyData           Secret
	// Token is sent as a bearer token. TokenFile holds one too and wins; it is read again every minute.
	Token     Secret
	TokenFile string
	// Username and Password are sent as basic authentication.
	Username string
	Password Secret
	// Exec runs a program that prints a credential, if there is none of those above.
	Exec *ExecPlugin
	// OIDC refreshes an ID token of an OpenID Connect provider, if there is none of those above.
	OIDC *OIDC
	// Impersonate makes requests as another user.
	Impersonate Impersonation

	// ProxyURL is an http, https or socks5 proxy; "" obeys HTTPS_PROXY and NO_PROXY. A user and a password in it are for the
	// proxy.
	ProxyURL Secret
	// DisableCompression requests responses without compression. The default, gzip for what servers compress, which is large
	// responses other than watches, needs less of the network at about the same CPU time, also on loopback: see "Choices that
	// were measured" in docs/BENCHMARKS.md.
	DisableCompression bool
}

// Impersonation is the user that requests are made as:
// https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/. The zero value is the credential's own.
type Impersonation struct {
	User, UID string
	Groups    []string
	Extra     map[string][]string
}

// Options are the settings of a connection that do not depend on the server. Their zero values are valid defaults.
type Options struct {
	// Namespace is the namespace of namespaced resources, unless a handle has another; "" means "default".
	Namespace string
	// UserAgent names the program in the server's audit log and, up to its first slash, as the default field manager of
	// what it writes. "" means anykind/VERSION (OS/ARCH).
	UserAgent string
	// RateLimiter, if any, delays every attempt, and its error ends the request; *rate.Limiter of golang.org/x/time/rate is
	// one. There is none by default: the server protects itself, and returns when to try again.
	RateLimiter RateLimiter
	// WrapTransport puts another round tripper around the connection's own, such as OpenTelemetry's. It gets every attempt,
	// without credentials.
	WrapTransport func(http.RoundTripper) http.RoundTripper
	// OnAttempt is called after every attempt, in the goroutine that made it.
	OnAttempt func(context.Context, Attempt)
	// OnWarning is called with every warning of the server, once for a connection unless RepeatWarnings is set. See
	// [CollectWarnings] for those of one call, and https://kubernetes.io/blog/2020/09/03/warnings/.
	OnWarning func(ctx context.Context, text string)
	// RepeatWarnings calls OnWarning with the same text for each response that has it.
	RepeatWarnings bool
}

// RateLimiter delays requests.
type RateLimiter interface {
	// Wait returns nil when the caller may proceed, or an error if it may not.
	Wait(context.Context) error
}

// Secret is a text that no fmt verb, log/slog handler or encoder shows; see [kubeconfig.Secret]. Reveal returns it.
type Secret = kubeconfig.Secret

// NewSecret returns a secret that holds text.
func NewSecret(text string) Secret { return kubeconfig.NewSecret(text) }

// Format implements fmt.Formatter for every verb, without secrets.
func (c Config) Format(state fmt.State, _ rune) { sanitize.Format(state, c) }

// MarshalJSON implements json.Marshaler with what Format prints.
func (c Config) MarshalJSON() ([]byte, error) { return sanitize.JSON(c) }

// LogValue implements slog.LogValuer with what identifies the connection, and the kinds of its credentials.
func (c Config) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("server", sanitize.URL(c.Server)), slog.String("namespace", c.Namespace)}
	for _, credential := range []struct {
		name    string
		present bool
	}{
		{"client certificate", c.hasCertificate()},
		{"token", c.hasToken()},
		{"basic", c.hasBasic()},
		{"exec plugin", c.Exec != nil},
		{"oidc", c.OIDC != nil},
	} {
		if credential.present {
			attrs = append(attrs, slog.String("credential", credential.name))
		}
	}
	return slog.GroupValue(attrs...)
}

func (c *Config) hasCertificate() bool { return len(c.CertData) > 0 || c.CertFile != "" }

func (c *Config) hasToken() bool { return !c.Token.IsZero() || c.TokenFile != "" }

func (c *Config) hasBasic() bool { return c.Username != "" || !c.Password.IsZero() }
