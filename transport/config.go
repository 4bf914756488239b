package transport

import (
	"fmt"
	"log/slog"
)

// Config says where an API server is and how a client proves who it is. The zero value of every field but Server is
// a valid default. Inline data wins over the file of the same name. It is a plain value: copying it is cheap, and
// changing it after [Open] changes nothing.
type Config struct {
	// Server is the API server's URL, with a path where one stands before /api: https://host:6443/prefix.
	Server string
	Options

	// CAFile and CAData hold the PEM certificates that sign the server's; with neither, the system's roots do. This
	// file and the next two are read again every minute, as whoever rotates certificates expects.
	CAFile string
	CAData []byte
	// ServerName is the name the server's certificate must hold, where it is not the URL's host.
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
	// Exec runs a program that prints a credential, where there is none of those above.
	Exec *ExecPlugin
	// OIDC renews an ID token of an OpenID Connect provider, where there is none of those above.
	OIDC *OIDC
	// Impersonate asks the server to act as somebody else.
	Impersonate Impersonation

	// ProxyURL is an http, https or socks5 proxy; "" obeys HTTPS_PROXY and NO_PROXY. A user and a password in it are for the
	// proxy, and are left out where the config is printed.
	ProxyURL string
	// DisableCompression asks the server not to compress what it sends.
	DisableCompression bool
}

// Impersonation is whom the server shall take the client for:
// https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/. The zero value is nobody else.
type Impersonation struct {
	User, UID string
	Groups    []string
	Extra     map[string][]string
}

// String describes the config without its secrets.
func (c Config) String() string { return c.LogValue().String() }

// Format implements fmt.Formatter with what String returns, for every verb.
func (c Config) Format(state fmt.State, _ rune) { printSafe(state, c) }

// MarshalJSON implements json.Marshaler with what String returns.
func (c Config) MarshalJSON() ([]byte, error) { return safeJSON(c) }

// LogValue implements slog.LogValuer: what identifies the connection, and which credentials there are, never what
// they are.
func (c Config) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("server", withoutSecrets(c.Server)), slog.String("namespace", c.Namespace)}
	for _, credential := range []struct {
		name    string
		present bool
	}{
		{"client certificate", len(c.CertData) > 0 || c.CertFile != ""},
		{"token", !c.Token.IsZero() || c.TokenFile != ""},
		{"basic", c.Username != ""},
		{"exec plugin", c.Exec != nil},
		{"oidc", c.OIDC != nil},
	} {
		if credential.present {
			attrs = append(attrs, slog.String("credential", credential.name))
		}
	}
	return slog.GroupValue(attrs...)
}
