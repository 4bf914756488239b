package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/anykind/anykind/internal/sanitize"
	"github.com/anykind/anykind/transport/internal/credential"
	"github.com/anykind/anykind/transport/internal/execplugin"
	"github.com/anykind/anykind/transport/internal/oidc"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// ExecPlugin is a credential plugin:
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins.
//
// It runs when a request needs a credential: for the first request, after the credential expired, and when the server returns
// 401. Concurrent requests of a [Conn] share a run. The program is killed when no request waits for it any more. On Unix its
// children are killed, too, unless this process has a terminal: the children share it then. Standard error is passed on to this
// process's standard error, for prompts to the user; standard output is never shown.
type ExecPlugin struct {
	// Exec is the plugin's configuration as in kubeconfig files. Its Args are visible to every user of the machine while the
	// program runs; a secret belongs into its Env. Printing omits both, except for an unexported field of a struct. An empty
	// InteractiveMode means IfAvailable.
	kubeconfig.Exec
	// ClusterConfig is the kubeconfig cluster's extension client.authentication.k8s.io/exec. ProvideClusterInfo passes it to the
	// program with the server's URL and certificate authority.
	ClusterConfig json.RawMessage
	// Allowlist, if it is not nil, has the permitted commands: names and paths, as in the kubeconfig or as resolved by PATH. A
	// name permits its resolved path, and a path permits a name with this resolved path. An empty list permits no command.
	Allowlist []string
}

// OIDC is a user of an OpenID Connect provider. The ID token is the bearer token:
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#openid-connect-tokens. It has the settings of a
// kubeconfig's auth-provider "oidc" except extra-scopes, as a refresh keeps the scopes of the log-in.
//
// The ID token is used until it expires or the server returns 401. Then it is refreshed at the issuer, once for all concurrent
// requests. A refresh continues for up to a minute when no request waits for it any more: the issuer may already have replaced
// the refresh token.
type OIDC struct {
	// Issuer is the provider's URL. Its /.well-known/openid-configuration names the token endpoint. Both URLs must be https, or
	// http on this machine. Redirects to a different host are not followed.
	Issuer string
	// ClientID and ClientSecret are the client of the log-in; a public client has no secret.
	ClientID     string
	ClientSecret kubeconfig.Secret
	// IDToken may be missing or expired if there is a RefreshToken. RefreshToken may be missing until IDToken expires.
	IDToken, RefreshToken kubeconfig.Secret
	// CAFile and CAData hold the PEM certificates of the issuer's authority. If both are empty, the system's roots are used.
	CAFile string
	CAData []byte
	// LoadTokens, if any, returns the stored tokens, possibly refreshed by a different program in the meantime. It is called
	// before a refresh, and again if the issuer rejects the refresh token: most issuers accept each refresh token once, and some
	// revoke all tokens if a refresh token is used twice. An error means that there are no stored tokens.
	LoadTokens func(ctx context.Context) (idToken, refreshToken string, err error)
	// SaveTokens receives the new ID and refresh tokens for storage after each refresh. The refresh token may be unchanged. ctx
	// has a deadline, and calls are sequential. An error fails the requests waiting for the refresh; later requests use the new
	// tokens. nil keeps the tokens in memory only.
	SaveTokens func(ctx context.Context, idToken, refreshToken string) error
}

// Format implements fmt.Formatter for every verb, without tokens and secrets.
func (o OIDC) Format(state fmt.State, _ rune) { sanitize.Format(state, o) }

// MarshalJSON implements json.Marshaler with the text of Format.
func (o OIDC) MarshalJSON() ([]byte, error) { return sanitize.JSON(o) }

// LogValue implements slog.LogValuer with the content of Format.
func (o OIDC) LogValue() slog.Value {
	return slog.GroupValue(slog.String("issuer", sanitize.URL(o.Issuer)), slog.String("client", o.ClientID),
		slog.Bool("id token", !o.IDToken.IsZero()), slog.Bool("refresh token", !o.RefreshToken.IsZero()))
}

// newAuthenticator returns the authenticator for the credential of cfg. As in kubectl, an inline credential or a file wins over
// an exec plugin.
func newAuthenticator(cfg *Config) (credential.Authenticator, error) {
	switch {
	case cfg.hasToken() && cfg.hasBasic():
		return nil, errors.New("a token and a user name exclude each other (drop one)")
	case cfg.Exec != nil && cfg.OIDC != nil:
		return nil, errors.New("an exec plugin and OIDC exclude each other (drop one)")
	case cfg.Impersonate.User == "" && len(impersonationHeader(cfg.Impersonate)) > 0:
		return nil, errors.New("impersonating a uid, groups or extras needs a user to impersonate")
	case !cfg.hasToken() && !cfg.hasBasic() && !cfg.hasCertificate() && cfg.Exec != nil:
		return execplugin.New(cfg.execConfig())
	}
	static, err := credential.NewStatic(kubeconfig.User{
		Token: cfg.Token, TokenFile: cfg.TokenFile, Username: cfg.Username, Password: cfg.Password,
		ClientCertificate: cfg.CertFile, ClientCertificateData: cfg.CertData,
		ClientKey: cfg.KeyFile, ClientKeyData: kubeconfig.SecretData{Secret: cfg.KeyData},
	})
	if err != nil || cfg.OIDC == nil || cfg.hasToken() || cfg.hasBasic() {
		return static, err
	}
	o := cfg.OIDC
	return oidc.New(oidc.Config{
		Issuer: o.Issuer, ClientID: o.ClientID, ClientSecret: o.ClientSecret.Reveal(),
		IDToken: o.IDToken.Reveal(), RefreshToken: o.RefreshToken.Reveal(),
		CA: credential.NewFile(o.CAData, o.CAFile), Certificate: static,
		LoadTokens: o.LoadTokens, SaveTokens: o.SaveTokens,
	})
}

// execConfig returns a copy of the plugin's configuration.
func (c *Config) execConfig() execplugin.Config {
	config := execplugin.Config{
		Exec:      c.Exec.Exec,
		Allowlist: slices.Clone(c.Exec.Allowlist),
		CA:        credential.NewFile(c.CAData, c.CAFile),
		Cluster: execplugin.Cluster{
			Server: c.Server, ServerName: c.ServerName, Insecure: c.Insecure, ProxyURL: c.ProxyURL.Reveal(),
			DisableCompression: c.DisableCompression,
		},
	}
	config.Args = slices.Clone(config.Args)
	config.Env = slices.Clone(config.Env)
	if len(c.Exec.ClusterConfig) > 0 { // nil can be encoded, empty JSON cannot
		config.Cluster.Config = bytes.Clone(c.Exec.ClusterConfig)
	}
	return config
}
