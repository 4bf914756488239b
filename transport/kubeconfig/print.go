package kubeconfig

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/anykind/anykind/internal/sanitize"
)

// These methods keep secrets out of output: see sanitize.Format. Types with secrets only of type Secret or Extensions need no
// methods.

// Format implements fmt.Formatter. It prints the names of the entries.
func (f File) Format(state fmt.State, _ rune) { sanitize.Format(state, f) }

// LogValue implements slog.LogValuer with the names of the entries.
func (f File) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("current-context", f.CurrentContext),
		slog.String("contexts", names(f.Contexts)),
		slog.String("clusters", names(f.Clusters)),
		slog.String("users", names(f.Users)))
}

// MarshalJSON implements json.Marshaler with the text of Format.
func (f File) MarshalJSON() ([]byte, error) { return sanitize.JSON(f) }

// Format implements fmt.Formatter, without a password in a URL.
func (c Cluster) Format(state fmt.State, _ rune) { sanitize.Format(state, c) }

// LogValue implements slog.LogValuer, without a password in a URL.
func (c Cluster) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("server", sanitize.URL(c.Server))}
	if c.TLSServerName != "" {
		attrs = append(attrs, slog.String("tls-server-name", c.TLSServerName))
	}
	if c.InsecureSkipTLSVerify {
		attrs = append(attrs, slog.Bool("insecure-skip-tls-verify", true))
	}
	if !c.ProxyURL.IsZero() {
		attrs = append(attrs, slog.String("proxy-url", sanitize.URL(c.ProxyURL.Reveal())))
	}
	return slog.GroupValue(attrs...)
}

// MarshalJSON implements json.Marshaler with the text of Format.
func (c Cluster) MarshalJSON() ([]byte, error) { return sanitize.JSON(c) }

// Format implements fmt.Formatter. It prints the kinds of credentials.
func (u User) Format(state fmt.State, _ rune) { sanitize.Format(state, u) }

// LogValue implements slog.LogValuer with the kinds of credentials.
func (u User) LogValue() slog.Value {
	var attrs []slog.Attr
	for _, credential := range []struct {
		name    string
		present bool
	}{
		{"client certificate", u.hasCertificate()},
		{"token", u.hasToken()},
		{"basic", u.hasBasic()},
		{"exec", u.Exec != nil},
		{"auth-provider", u.AuthProvider != nil},
	} {
		if credential.present {
			attrs = append(attrs, slog.String("credential", credential.name))
		}
	}
	if u.Impersonate != "" {
		attrs = append(attrs, slog.String("as", u.Impersonate))
	}
	return slog.GroupValue(attrs...)
}

// MarshalJSON implements json.Marshaler with the text of Format.
func (u User) MarshalJSON() ([]byte, error) { return sanitize.JSON(u) }

// Format implements fmt.Formatter, without arguments and environment.
func (e Exec) Format(state fmt.State, _ rune) { sanitize.Format(state, e) }

// LogValue implements slog.LogValuer, without arguments and environment.
func (e Exec) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("command", e.Command), slog.String("apiVersion", e.APIVersion),
		slog.Int("args", len(e.Args)), slog.Int("env", len(e.Env)))
}

// MarshalJSON implements json.Marshaler with the text of Format.
func (e Exec) MarshalJSON() ([]byte, error) { return sanitize.JSON(e) }

// Format implements fmt.Formatter. It prints the names of the extensions.
func (e Extensions) Format(state fmt.State, _ rune) { sanitize.Format(state, e) }

// LogValue implements slog.LogValuer with the names of the extensions.
func (e Extensions) LogValue() slog.Value { return slog.StringValue(names(e)) }

// MarshalJSON implements json.Marshaler with the text of Format.
func (e Extensions) MarshalJSON() ([]byte, error) { return sanitize.JSON(e) }

// Format implements fmt.Formatter, without secrets.
func (r ResolvedContext) Format(state fmt.State, _ rune) { sanitize.Format(state, r) }

// LogValue implements slog.LogValuer, without secrets.
func (r ResolvedContext) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("context", r.ContextName), slog.String("namespace", r.Namespace),
		slog.Any("cluster", r.Cluster.LogValue()), slog.Any("user", r.User.LogValue()))
}

// MarshalJSON implements json.Marshaler with the text of Format.
func (r ResolvedContext) MarshalJSON() ([]byte, error) { return sanitize.JSON(r) }

func names[M ~map[string]T, T any](entries M) string {
	if len(entries) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(entries)), ", ")
}
