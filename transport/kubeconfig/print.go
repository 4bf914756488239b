package kubeconfig

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// What follows keeps secrets out of output. Format answers every verb, %d and %x among them, which would print the
// bytes of a key where there were only a String. MarshalJSON gives encoders, slog's among them, what Format prints.

// Format implements fmt.Formatter: it names the entries.
func (f File) Format(state fmt.State, _ rune) { printSafe(state, f) }

// LogValue implements slog.LogValuer: it names the entries.
func (f File) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("current-context", f.CurrentContext),
		slog.String("contexts", names(f.Contexts)),
		slog.String("clusters", names(f.Clusters)),
		slog.String("users", names(f.Users)))
}

// MarshalJSON implements json.Marshaler with what Format prints.
func (f File) MarshalJSON() ([]byte, error) { return safeJSON(f) }

// Format implements fmt.Formatter, without a password in a URL.
func (c Cluster) Format(state fmt.State, _ rune) { printSafe(state, c) }

// LogValue implements slog.LogValuer, without a password in a URL.
func (c Cluster) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("server", withoutSecrets(c.Server))}
	if c.TLSServerName != "" {
		attrs = append(attrs, slog.String("tls-server-name", c.TLSServerName))
	}
	if c.InsecureSkipTLSVerify {
		attrs = append(attrs, slog.Bool("insecure-skip-tls-verify", true))
	}
	if c.ProxyURL != "" {
		attrs = append(attrs, slog.String("proxy-url", withoutSecrets(c.ProxyURL)))
	}
	return slog.GroupValue(attrs...)
}

// MarshalJSON implements json.Marshaler with what Format prints.
func (c Cluster) MarshalJSON() ([]byte, error) { return safeJSON(c) }

// Format implements fmt.Formatter: it says which credentials there are, not what they are.
func (u User) Format(state fmt.State, _ rune) { printSafe(state, u) }

// LogValue implements slog.LogValuer: it says which credentials there are, not what they are.
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

// MarshalJSON implements json.Marshaler with what Format prints.
func (u User) MarshalJSON() ([]byte, error) { return safeJSON(u) }

// Format implements fmt.Formatter, without extensions.
func (c Context) Format(state fmt.State, _ rune) { printSafe(state, c) }

// LogValue implements slog.LogValuer, without extensions.
func (c Context) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("cluster", c.Cluster), slog.String("user", c.User), slog.String("namespace", c.Namespace))
}

// MarshalJSON implements json.Marshaler with what Format prints.
func (c Context) MarshalJSON() ([]byte, error) { return safeJSON(c) }

// Format implements fmt.Formatter, without arguments and environment.
func (e Exec) Format(state fmt.State, _ rune) { printSafe(state, e) }

// LogValue implements slog.LogValuer, without arguments and environment.
func (e Exec) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("command", e.Command), slog.String("apiVersion", e.APIVersion),
		slog.Int("args", len(e.Args)), slog.Int("env", len(e.Env)))
}

// MarshalJSON implements json.Marshaler with what Format prints.
func (e Exec) MarshalJSON() ([]byte, error) { return safeJSON(e) }

// Format implements fmt.Formatter, without the value.
func (v EnvVar) Format(state fmt.State, _ rune) { printSafe(state, v) }

// LogValue implements slog.LogValuer, without the value.
func (v EnvVar) LogValue() slog.Value { return slog.StringValue(v.Name) }

// MarshalJSON implements json.Marshaler with what Format prints.
func (v EnvVar) MarshalJSON() ([]byte, error) { return safeJSON(v) }

// Format implements fmt.Formatter, without what Config holds.
func (a AuthProvider) Format(state fmt.State, _ rune) { printSafe(state, a) }

// LogValue implements slog.LogValuer, without what Config holds.
func (a AuthProvider) LogValue() slog.Value { return slog.GroupValue(slog.String("name", a.Name)) }

// MarshalJSON implements json.Marshaler with what Format prints.
func (a AuthProvider) MarshalJSON() ([]byte, error) { return safeJSON(a) }

// Format implements fmt.Formatter, without what extensions hold.
func (p Preferences) Format(state fmt.State, _ rune) { printSafe(state, p) }

// LogValue implements slog.LogValuer, without what extensions hold.
func (p Preferences) LogValue() slog.Value {
	return slog.GroupValue(slog.Bool("colors", p.Colors), slog.String("extensions", names(p.Extensions)))
}

// MarshalJSON implements json.Marshaler with what Format prints.
func (p Preferences) MarshalJSON() ([]byte, error) { return safeJSON(p) }

// Format implements fmt.Formatter: it names the extensions.
func (e Extensions) Format(state fmt.State, _ rune) { printSafe(state, e) }

// LogValue implements slog.LogValuer: it names the extensions.
func (e Extensions) LogValue() slog.Value { return slog.StringValue(names(e)) }

// MarshalJSON implements json.Marshaler with what Format prints.
func (e Extensions) MarshalJSON() ([]byte, error) { return safeJSON(e) }

// Format implements fmt.Formatter, without secrets.
func (r Resolved) Format(state fmt.State, _ rune) { printSafe(state, r) }

// LogValue implements slog.LogValuer, without secrets.
func (r Resolved) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("context", r.Context), slog.String("namespace", r.Namespace),
		slog.Any("cluster", r.Cluster.LogValue()), slog.Any("user", r.User.LogValue()))
}

// MarshalJSON implements json.Marshaler with what Format prints.
func (r Resolved) MarshalJSON() ([]byte, error) { return safeJSON(r) }

func safeJSON(v slog.LogValuer) ([]byte, error) { return json.Marshal(v.LogValue().String()) }

func printSafe(w io.Writer, v slog.LogValuer) {
	_, _ = io.WriteString(w, v.LogValue().String()) // fmt.State keeps no error to look at
}

// withoutSecrets drops from a URL what may be one: user, password, query.
func withoutSecrets(raw string) string {
	parsed, err := url.Parse(raw)
	if err != nil || parsed.User == nil && strings.Contains(raw, "@") {
		return "(not a URL)" // a password may hold a character that ends the host's part, such as ?
	}
	if parsed.User != nil {
		parsed.User = url.User("REDACTED")
	}
	parsed.RawQuery, parsed.Fragment = "", ""
	return parsed.String()
}

func names[M ~map[string]T, T any](entries M) string {
	if len(entries) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(entries)), ", ")
}
