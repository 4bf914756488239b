package kubeconfig_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/anykind/anykind/transport"
)

// end is the effect of a kubeconfig: what the server receives, however it is written.
type end struct {
	Server, Namespace  string
	Proxy              string
	DisableCompression bool

	Insecure   bool
	ServerName string
	CA         string

	Certificate, Key   string
	Token, TokenFile   string
	Username, Password string
	Exec               *execEnd
	OIDC               *oidcEnd

	As, AsUID string
	AsGroups  []string
	AsExtra   map[string][]string
}

type execEnd struct {
	APIVersion, Command, Mode, Hint string
	Args, Env                       []string
	ClusterInfo                     bool
	ClusterConfig                   string
}

type oidcEnd struct{ Issuer, ClientID, ClientSecret, IDToken, RefreshToken string }

func endOfClientGo(t *testing.T, cfg *rest.Config, namespace string) end {
	t.Helper()
	server, _, err := rest.DefaultServerUrlFor(cfg)
	require.NoError(t, err)
	e := end{
		Server: plainServer(server), Namespace: namespace, DisableCompression: cfg.DisableCompression,
		Insecure: cfg.Insecure, ServerName: cfg.ServerName, CA: dataOrFile(t, cfg.CAData, cfg.CAFile),
		Certificate: dataOrFile(t, cfg.CertData, cfg.CertFile), Key: dataOrFile(t, cfg.KeyData, cfg.KeyFile),
		Token: token(cfg.BearerToken, cfg.BearerTokenFile), TokenFile: cfg.BearerTokenFile,
		As: cfg.Impersonate.UserName, AsUID: cfg.Impersonate.UID,
		AsGroups: cfg.Impersonate.Groups, AsExtra: extra(cfg.Impersonate.Extra),
	}
	if cfg.Username != "" { // client-go sends no password without a name
		e.Username = cfg.Username
		e.Password = cfg.Password
	}
	if cfg.Proxy != nil {
		proxy, err := cfg.Proxy(&http.Request{URL: server})
		require.NoError(t, err)
		e.Proxy = proxy.String()
	}
	written := e.Token != "" || e.Username != ""
	// exec.Authenticator.UpdateTransportConfig: any other credential comes before a program.
	if exec := cfg.ExecProvider; exec != nil && !written && e.Certificate == "" {
		e.Exec = &execEnd{
			APIVersion: exec.APIVersion, Command: exec.Command, Mode: string(exec.InteractiveMode), Hint: exec.InstallHint,
			Args: exec.Args, ClusterInfo: exec.ProvideClusterInfo,
		}
		for _, env := range exec.Env {
			e.Exec.Env = append(e.Exec.Env, env.Name+"="+env.Value)
		}
		if unknown, ok := exec.Config.(*runtime.Unknown); ok && exec.ProvideClusterInfo {
			e.Exec.ClusterConfig = compact(t, unknown.Raw)
		}
	}
	// oidc's round tripper leaves an Authorization header that is there already.
	if provider := cfg.AuthProvider; provider != nil && !written {
		e.OIDC = &oidcEnd{
			provider.Config["idp-issuer-url"], provider.Config["client-id"], provider.Config["client-secret"],
			provider.Config["id-token"], provider.Config["refresh-token"],
		}
	}
	return e
}

func endOfAnykind(t *testing.T, cfg *transport.Config) end {
	t.Helper()
	server, err := url.Parse(cfg.Server)
	require.NoError(t, err)
	e := end{
		Server: plainServer(server), Namespace: cfg.Namespace, Proxy: cfg.ProxyURL.Reveal(), DisableCompression: cfg.DisableCompression,
		Token: token(cfg.Token.Reveal(), cfg.TokenFile), TokenFile: cfg.TokenFile, Username: cfg.Username, Password: cfg.Password.Reveal(),
		As: cfg.Impersonate.User, AsUID: cfg.Impersonate.UID, AsGroups: cfg.Impersonate.Groups, AsExtra: extra(cfg.Impersonate.Extra),
	}
	e.Insecure = cfg.Insecure
	e.ServerName = cfg.ServerName
	e.CA = dataOrFile(t, cfg.CAData, cfg.CAFile)
	e.Certificate = dataOrFile(t, cfg.CertData, cfg.CertFile)
	e.Key = dataOrFile(t, []byte(cfg.KeyData.Reveal()), cfg.KeyFile)
	written := e.Token != "" || e.Username != ""
	if exec := cfg.Exec; exec != nil && !written && e.Certificate == "" {
		e.Exec = &execEnd{
			APIVersion: exec.APIVersion, Command: exec.Command, Mode: exec.InteractiveMode, Hint: exec.InstallHint,
			Args: exec.Args, ClusterInfo: exec.ProvideClusterInfo,
		}
		if exec.ProvideClusterInfo {
			e.Exec.ClusterConfig = compact(t, exec.ClusterConfig)
		}
		for _, env := range exec.Env {
			e.Exec.Env = append(e.Exec.Env, env.Name+"="+env.Value.Reveal())
		}
	}
	if oidc := cfg.OIDC; oidc != nil && !written {
		e.OIDC = &oidcEnd{oidc.Issuer, oidc.ClientID, oidc.ClientSecret.Reveal(), oidc.IDToken.Reveal(), oidc.RefreshToken.Reveal()}
	}
	return e
}

// plainServer removes what requests do not have: a trailing slash and a query.
func plainServer(server *url.URL) string {
	return (&url.URL{Scheme: server.Scheme, Host: server.Host, Path: strings.TrimRight(server.Path, "/")}).String()
}

func dataOrFile(t *testing.T, data []byte, path string) string {
	t.Helper()
	if len(data) > 0 || path == "" {
		return string(data)
	}
	read, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(read)
}

// token returns the token that is sent: the file's if it can be read.
func token(inline, path string) string {
	if read, err := os.ReadFile(path); path != "" && err == nil && len(bytes.TrimSpace(read)) > 0 {
		return string(bytes.TrimSpace(read))
	}
	return inline
}

// extra returns nil for an empty map.
func extra(values map[string][]string) map[string][]string {
	if len(values) == 0 {
		return nil
	}
	return values
}

func compact(t *testing.T, raw []byte) string {
	t.Helper()
	if len(raw) == 0 {
		return ""
	}
	var out bytes.Buffer
	require.NoError(t, json.Compact(&out, raw))
	return out.String()
}
