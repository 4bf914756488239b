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

// ExecPlugin is a program that prints a credential:
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins.
//
// It runs when a request needs a credential: for the first one, after the credential expired, and when the server
// returns 401. Requests of a [Conn] that need one at the same time wait for one run. The program is killed when no request
// waits for it any more; on Unix its children are too, unless this process has a terminal, which they then share. Its
// standard error is passed on to this process's, where users see prompts; its standard output is shown nowhere.
type ExecPlugin struct {
	// Exec is the plugin as kubeconfig files configure it. Its Args are visible to every user of the machine while the program
	// runs; a secret belongs into its Env. It is printed without both, though not as an unexported field of another type. An
	// empty InteractiveMode means IfAvailable.
	kubeconfig.Exec
	// ClusterConfig is the kubeconfig cluster's extension client.authentication.k8s.io/exec, which ProvideClusterInfo passes
	// to the program with the server's URL and certificate authority.
	ClusterConfig json.RawMessage
	// Allowlist, if it is not nil, has the only commands that may run: names and paths, as the kubeconfig writes them or as
	// PATH resolves them. A name allows the path that it resolves to, a path the name that resolves to it. An empty list
	// allows none.
	Allowlist []string
}

// OIDC is a user of an OpenID Connect provider, whose ID token is the bearer token:
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#openid-connect-tokens. It has the settings of a
// kubeconfig's auth-provider "oidc" except extra-scopes, as a refresh keeps the scopes of the log-in.
//
// The ID token is used until it expires or the server returns 401. Then it is refreshed at the issuer, once for all requests
// that need one at that time. A refresh that began continues for up to a minute when no request waits for it any more: the
// issuer may already have replaced the refresh token.
type OIDC struct {
	// Issuer is the provider's URL, whose /.well-known/openid-configuration names the token endpoint. Both must be https, or
	// http on this machine. Redirects to other hosts are not followed.
	Issuer string
	// ClientID and ClientSecret are those of the log-in; a public client has no secret.
	ClientID     string
	ClientSecret Secret
	// IDToken may be missing or expired if there is a RefreshToken, which may be missing until then.
	IDToken, RefreshToken Secret
	// CAFile and CAData hold the PEM certificates that sign the issuer's; with neither, the system's roots do.
	CAFile string
	CAData []byte
	// LoadTokens, if any, returns the tokens that are stored now, where other programs that refresh them save theirs too. It
	// is called before a refresh, and again if the issuer rejects the refresh token: most issuers accept each one once, and
	// some revoke all if one is used twice. An error means that there are none.
	LoadTokens func(ctx context.Context) (idToken, refreshToken string, err error)
	// SaveTokens is called after each refresh with the tokens that replace the ones above, of which one may be the same as
	// before, so that programs that load them later do not find them outdated. Its ctx has a deadline, and the calls come one
	// after the other. Its error fails the requests that wait for the refresh; later ones use the new tokens. nil keeps the
	// tokens in memory only.
	SaveTokens func(ctx context.Context, idToken, refreshToken string) error
}

// Format implements fmt.Formatter for every verb, without tokens and secrets.
func (o OIDC) Format(state fmt.State, _ rune) { sanitize.Format(state, o) }

// MarshalJSON implements json.Marshaler with what Format prints.
func (o OIDC) MarshalJSON() ([]byte, error) { return sanitize.JSON(o) }

// LogValue implements slog.LogValuer with what Format prints.
func (o OIDC) LogValue() slog.Value {
	return slog.GroupValue(slog.String("issuer", sanitize.URL(o.Issuer)), slog.String("client", o.ClientID),
		slog.Bool("id token", !o.IDToken.IsZero()), slog.Bool("refresh token", !o.RefreshToken.IsZero()))
}

// newAuthenticator returns the authenticator of the one kind of credential that the config has. As in kubectl, an inline
// credential or a file wins over an exec plugin.
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
		CA: credential.NewFile(bytes.Clone(o.CAData), o.CAFile), Certificate: static,
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
	config.Args, config.Env = slices.Clone(config.Args), slices.Clone(config.Env)
	if len(c.Exec.ClusterConfig) > 0 { // nil can be encoded, empty JSON cannot
		config.Cluster.Config = bytes.Clone(c.Exec.ClusterConfig)
	}
	return config
}
