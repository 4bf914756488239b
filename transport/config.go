package transport

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/anykind/anykind/internal/sanitize"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// Config is the address of an API server and the credential for it. The zero value of every field but Server is a valid default.
// Inline data wins over the file of the same name. It is a plain value: copying it is cheap, and changing it after [Open] has no
// effect.
type Config struct {
	// Server is the API server's URL, with a path if one precedes /api: https://host:6443/prefix.
	Server string
	Options

	// CAFile and CAData hold the PEM certificates of the server's authority. If both are empty, the system's roots are used.
	// CAFile, CertFile and KeyFile are read again every minute, for certificate rotation.
	CAFile string
	CAData []byte
	// ServerName is the expected name in the server's certificate. "" means the URL's host.
	ServerName string
	// Insecure accepts any server certificate.
	Insecure bool

	// CertFile, CertData, KeyFile and KeyData are the client's PEM certificate and key.
	CertFile, KeyFile string
	CertData          []byte
	KeyData           kubeconfig.Secret
	// Token is sent as a bearer token. TokenFile contains a token and wins over Token; it is read again every minute.
	Token     kubeconfig.Secret
	TokenFile string
	// Username and Password are sent as basic authentication.
	Username string
	Password kubeconfig.Secret
	// Exec runs a credential plugin if no credential above is set.
	Exec *ExecPlugin
	// OIDC refreshes an ID token of an OpenID Connect provider if no credential above is set.
	OIDC *OIDC
	// Impersonate makes requests as a different user.
	Impersonate Impersonation

	// ProxyURL is an http, https or socks5 proxy; "" obeys HTTPS_PROXY and NO_PROXY. A user and a password in the URL are sent to
	// the proxy.
	ProxyURL kubeconfig.Secret
	// Dial opens the network connections, for example of an in-memory server. Without it, they are TCP connections. With it, the
	// environment's proxy is not used.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// DisableCompression requests responses without compression. By default, servers compress large responses other than watches
	// with gzip. This needs less of the network at about the same CPU time, even on loopback: see "Choices that were measured" in
	// docs/BENCHMARKS.md.
	DisableCompression bool
}

// Impersonation is the user of impersonated requests:
// https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/. The zero value is the credential's own user.
type Impersonation struct {
	User, UID string
	Groups    []string
	Extra     map[string][]string
}

// Options are the settings of a connection that do not depend on the server. Their zero values are valid defaults.
type Options struct {
	// Namespace is the namespace of namespaced resources, unless a handle has its own; "" means "default".
	Namespace string
	// UserAgent is the program's name in the server's audit log and, up to the first slash, the default field manager of its
	// writes. "" means anykind/VERSION (OS/ARCH).
	UserAgent string
	// RateLimiter, if any, delays every attempt, and its error ends the request; *rate.Limiter of golang.org/x/time/rate is a
	// RateLimiter. There is none by default: the server protects itself, and returns a Retry-After.
	RateLimiter RateLimiter
	// WrapTransport wraps the connection's round tripper, for example with OpenTelemetry's. The wrapper gets every attempt,
	// without credentials.
	WrapTransport func(http.RoundTripper) http.RoundTripper
	// OnAttempt is called after every attempt, in the goroutine of the attempt.
	OnAttempt func(context.Context, Attempt)
	// OnWarning is called with every warning of the server, once per connection unless RepeatWarnings is set. See
	// [CollectWarnings] for the warnings of a call, and https://kubernetes.io/blog/2020/09/03/warnings/.
	OnWarning func(ctx context.Context, text string)
	// RepeatWarnings calls OnWarning for each response with a warning, also for a repeated text.
	RepeatWarnings bool
	// MemoryLimits are for what packages over the connection decode.
	MemoryLimits MemoryLimits
	// Protobuf makes package dynamic request built-in objects and metadata as protobuf: see dynamic.Handle. The server then needs
	// about half of the CPU time for a list: https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding.
	Protobuf bool
}

// MemoryLimits bound the memory that decoded responses take, in bytes. A few KiB of compressed JSON may decode to GiB. 0
// means the default, and less than 0 no limit. A response that exceeds its limit is an error: in packages that decode
// objects, a *unstructured.LimitError.
type MemoryLimits struct {
	// Object is for one object, such as an item of a list or an event of a watch. Its JSON may have an eighth of the limit.
	// The default, 320 MiB, admits every object that an API server stores.
	Object int64
	// Page is for the objects of a list that are held together, and for discovery documents. The default is 2 GiB.
	Page int64
}

// RateLimiter delays requests.
type RateLimiter interface {
	// Wait returns nil when the caller may proceed, or an error.
	Wait(context.Context) error
}

// Format implements fmt.Formatter for every verb, without secrets.
func (c Config) Format(state fmt.State, _ rune) { sanitize.Format(state, c) }

// MarshalJSON implements json.Marshaler with the text of Format.
func (c Config) MarshalJSON() ([]byte, error) { return sanitize.JSON(c) }

// LogValue implements slog.LogValuer with the server, the namespace and the kinds of credentials.
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
