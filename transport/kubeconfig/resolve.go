package kubeconfig

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"
)

// ErrNoContext reports that no context was chosen and the file has no current context.
var ErrNoContext = errors.New("no context chosen: the kubeconfig has no current-context")

// ResolveOptions override the file, like kubectl's flags of these names. Empty fields override nothing.
type ResolveOptions struct {
	// Context overrides the current context.
	Context string
	// Cluster, User and Namespace override the context's fields. With a Cluster no context is needed.
	Cluster, User, Namespace string
}

// ResolvedContext is a context with its validated cluster and user.
type ResolvedContext struct {
	ContextName   string // "" if a cluster was chosen and no context
	ContextOrigin string // the context's file; see [Cluster.Origin]
	// ClusterName and UserName are from [ResolveOptions] or the context.
	ClusterName, UserName string
	// Cluster's Server is a URL with a scheme and without query and fragment. kubectl ignores query and fragment.
	Cluster Cluster
	// User has only the credentials used by kubectl. See [File.Resolve].
	User User
	// Namespace is the default namespace: "default" if the context has none.
	Namespace string
}

// Resolve returns a context with its cluster and user. The context is opts.Context, or the current context; opts may be nil. The
// error names the missing entry and the existing entries, or is an [*InvalidError] with all reasons for kubectl to reject the
// entries. Resolve opens the certificate, key and token files, but does not read them.
//
// The result equals kubectl's. A server without https gets no credentials, only impersonation, and no TLS settings. A token, a
// password or a client certificate takes precedence over an exec program, and a token or a password over an auth-provider. A key
// without a certificate is dropped. A context without a user is anonymous. A context with a missing user is an error. Only this
// differs: client-go is anonymous then, and kubectl prompts for a password.
func (f *File) Resolve(opts *ResolveOptions) (*ResolvedContext, error) {
	if opts == nil {
		opts = &ResolveOptions{}
	}
	r, err := f.lookup(opts)
	if err != nil {
		return nil, err
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	if isHTTPS(r.Cluster.Server) {
		r.User = usedCredentials(r.User)
	} else {
		r.Cluster, r.User = withoutTLS(r.Cluster, r.User)
	}
	r.Cluster.Server, _ = serverURL(r.Cluster.Server) // validated above
	return r, nil
}

func (f *File) lookup(opts *ResolveOptions) (*ResolvedContext, error) {
	name := cmp.Or(opts.Context, f.CurrentContext)
	context, exists := f.Contexts[name] // also for the name "", like kubectl
	if !exists && name != "" {
		return nil, fmt.Errorf("context %q does not exist (contexts: %s)", name, names(f.Contexts))
	}
	if _, hasUnnamed := f.Clusters[""]; !exists && opts.Cluster == "" && !hasUnnamed {
		return nil, fmt.Errorf("%w (contexts: %s)", ErrNoContext, names(f.Contexts))
	}
	r := &ResolvedContext{
		ContextName: name, ContextOrigin: context.Origin,
		ClusterName: cmp.Or(opts.Cluster, context.Cluster),
		UserName:    cmp.Or(opts.User, context.User),
		Namespace:   cmp.Or(opts.Namespace, context.Namespace, "default"),
	}
	if r.Cluster, exists = f.Clusters[r.ClusterName]; !exists {
		if r.ClusterName == "" {
			return nil, fmt.Errorf("context %q has no cluster (set one of the clusters: %s)", name, names(f.Clusters))
		}
		return nil, fmt.Errorf("context %q: cluster %q does not exist (clusters: %s)", name, r.ClusterName, names(f.Clusters))
	}
	if r.User, exists = f.Users[r.UserName]; !exists && r.UserName != "" {
		return nil, fmt.Errorf("context %q: user %q does not exist (users: %s)", name, r.UserName, names(f.Users))
	}
	return r, nil
}

func (u User) hasCertificate() bool {
	return u.ClientCertificate != "" || len(u.ClientCertificateData) > 0
}
func (u User) hasToken() bool { return !u.Token.IsZero() || u.TokenFile != "" }
func (u User) hasBasic() bool { return u.Username != "" || !u.Password.IsZero() }

// withoutTLS drops the settings ignored by kubectl without TLS: credentials could be read on the network.
func withoutTLS(c Cluster, u User) (Cluster, User) {
	c.TLSServerName = ""
	c.InsecureSkipTLSVerify = false
	c.CertificateAuthority = ""
	c.CertificateAuthorityData = nil
	return c, User{
		Impersonate: u.Impersonate, ImpersonateUID: u.ImpersonateUID,
		ImpersonateGroups: u.ImpersonateGroups, ImpersonateUserExtra: u.ImpersonateUserExtra,
		Extensions: u.Extensions, Origin: u.Origin,
	}
}

// usedCredentials returns a copy of the user with only the credentials used by kubectl.
func usedCredentials(u User) User {
	if !u.hasCertificate() {
		u.ClientKey = ""
		u.ClientKeyData = SecretData{}
	}
	if u.Username == "" {
		u.Password = Secret{}
	}
	if u.hasToken() || u.hasBasic() {
		u.Exec = nil
		u.AuthProvider = nil
	}
	if u.hasCertificate() {
		u.Exec = nil
	}
	if u.Exec != nil {
		exec := *u.Exec
		exec.InstallHint = printable(exec.InstallHint)
		exec.InteractiveMode = cmp.Or(exec.InteractiveMode, InteractiveIfAvailable)
		u.Exec = &exec
	}
	return u
}

func isHTTPS(server string) bool {
	parsed, err := url.Parse(server)
	return err == nil && parsed.Scheme == "https"
}

// serverURL returns a server's URL. For host:port the scheme is http, like in kubectl, even with a certificate authority. ok is
// false for an invalid server.
func serverURL(server string) (full string, ok bool) {
	parsed, err := url.Parse(server)
	if err != nil || parsed.Scheme == "" || parsed.Host == "" {
		parsed, err = url.Parse("http://" + server)
		if err != nil || parsed.Path != "" && parsed.Path != "/" {
			return "", false
		}
	}
	parsed.RawQuery = ""
	parsed.Fragment = ""
	parsed.ForceQuery = false
	return parsed.String(), true
}

// printable replaces characters of possible escape sequences: text from a file is printed to a terminal.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z) || '\t' <= r && r <= '\r' {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "%U", r)
		}
	}
	return b.String()
}
