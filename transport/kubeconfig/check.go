package kubeconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"
)

// InvalidError lists what is wrong with the entries that a context names. errors.Is and errors.As look into Problems.
type InvalidError struct {
	// Context is the context's name.
	Context string
	// Problems each name the entry, its field, and what to do. There is at least one.
	Problems []error
}

// Error writes the problems one after the other.
func (e *InvalidError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, problem := range e.Problems {
		texts[i] = problem.Error()
	}
	return fmt.Sprintf("context %q: %s", e.Context, strings.Join(texts, "; "))
}

// Unwrap gives errors.Is and errors.As the problems.
func (e *InvalidError) Unwrap() []error { return e.Problems }

// checking collects what kubectl refuses about entries: clientcmd's validation, and what client-go finds when it
// builds a connection.
type checking struct {
	context  string
	problems []error
}

func (c *checking) err() error {
	if len(c.problems) == 0 {
		return nil
	}
	return &InvalidError{Context: c.context, Problems: c.problems}
}

// refuser adds problems of one entry; where says which, and in which file.
func (c *checking) refuser(what, name, origin string) func(field, format string, args ...any) {
	where := fmt.Sprintf("%s %q", what, name)
	if origin != "" {
		where += " in " + origin
	}
	return func(field, format string, args ...any) {
		c.problems = append(c.problems, fmt.Errorf("%s: %s: "+format, append([]any{where, field}, args...)...))
	}
}

func (c *checking) cluster(name string, cluster Cluster) {
	refuse := c.refuser("cluster", name, cluster.Origin)
	if cluster.Server == "" {
		refuse("server", "it has no server: set the URL, such as https://host:6443")
	} else if _, ok := serverURL(cluster.Server); !ok {
		refuse("server", "it is not a URL: write it as https://host:6443")
	}
	if cluster.ProxyURL != "" {
		if proxy, err := url.Parse(cluster.ProxyURL); err != nil {
			refuse("proxy-url", "it is not a URL: write it as http://host:3128") // the error would quote a password
		} else if !slices.Contains([]string{"http", "https", "socks5"}, proxy.Scheme) {
			refuse("proxy-url", "its scheme is %q: use http, https or socks5", proxy.Scheme)
		}
	}
	if cluster.CertificateAuthority != "" && len(cluster.CertificateAuthorityData) > 0 {
		refuse("certificate-authority", "certificate-authority-data is there too: delete one")
	}
	readable(refuse, "certificate-authority", cluster.CertificateAuthority)
}

func (c *checking) user(name string, user User) {
	refuse := c.refuser("user", name, user.Origin)
	if !user.Token.IsZero() && user.hasBasic() {
		refuse("token", "username or password is there too, and only one of token and basic authentication can be sent: delete one")
	}
	if user.hasCertificate() {
		if user.ClientCertificate != "" && len(user.ClientCertificateData) > 0 {
			refuse("client-certificate", "client-certificate-data is there too: delete one")
		}
		if user.ClientKey != "" && !user.ClientKeyData.IsZero() {
			refuse("client-key", "client-key-data is there too: delete one")
		}
		if user.ClientKey == "" && user.ClientKeyData.IsZero() {
			refuse("client-key", "a client certificate needs its key: set client-key or client-key-data")
		}
		readable(refuse, "client-certificate", user.ClientCertificate)
		readable(refuse, "client-key", user.ClientKey)
	}
	if user.Impersonate == "" && (user.ImpersonateUID != "" || len(user.ImpersonateGroups) > 0 || len(user.ImpersonateUserExtra) > 0) {
		refuse("as", "as-uid, as-groups and as-user-extra need somebody to impersonate: set it, or delete them")
	}
	if user.Exec != nil {
		checkExec(refuse, user)
	}
}

func checkExec(refuse func(field, format string, args ...any), user User) {
	exec := user.Exec
	if user.AuthProvider != nil {
		refuse("exec", "auth-provider is there too: delete one")
	}
	if exec.Command == "" {
		refuse("exec.command", "it is missing: name the program that prints the credentials")
	}
	if exec.APIVersion == "" {
		refuse("exec.apiVersion", "it is missing: set %s", ExecV1)
	}
	for i, env := range exec.Env {
		if env.Name == "" {
			refuse("exec.env", "variable %d has no name: give it one, or delete it", i+1)
		}
	}
	switch exec.InteractiveMode {
	case InteractiveNever, InteractiveIfAvailable, InteractiveAlways:
	case "":
		// Versions before v1 did not have the field.
		if exec.APIVersion != ExecV1Beta1 && exec.APIVersion != "client.authentication.k8s.io/v1alpha1" {
			refuse("exec.interactiveMode", "it is missing: set Never, IfAvailable or Always")
		}
	default:
		refuse("exec.interactiveMode", "%q is none of Never, IfAvailable and Always", exec.InteractiveMode)
	}
}

// secure checks what matters only where there is TLS: elsewhere kubectl does not look at it.
func (c *checking) secure(r *Resolved) {
	cluster := c.refuser("cluster", r.ClusterName, r.Cluster.Origin)
	if r.Cluster.InsecureSkipTLSVerify && (r.Cluster.CertificateAuthority != "" || len(r.Cluster.CertificateAuthorityData) > 0) {
		cluster("insecure-skip-tls-verify", "a certificate authority is there too, and would not be looked at: delete one")
	}
	user := c.refuser("user", r.UserName, r.User.Origin)
	if r.User.Username != "" && r.User.Token.IsZero() && r.User.TokenFile != "" {
		user("tokenFile", "username is there too, and only one of token and basic authentication can be sent: delete one")
	}
	if path := r.User.TokenFile; path != "" && r.User.Token.IsZero() {
		readable(user, "tokenFile", path)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
			user("tokenFile", "%s is empty: put a token into it", path)
		}
	}
	if exec := r.User.Exec; exec != nil && exec.APIVersion != "" && exec.APIVersion != ExecV1 && exec.APIVersion != ExecV1Beta1 {
		user("exec.apiVersion", "%q is neither %s nor v1beta1: set one that the program knows", exec.APIVersion, ExecV1)
	}
	if r.User.AuthProvider != nil {
		checkAuthProvider(user, r.User.AuthProvider)
	}
}

func checkAuthProvider(refuse func(field, format string, args ...any), provider *AuthProvider) {
	if provider.Name != "oidc" {
		refuse("auth-provider.name", "kubectl no longer knows %q, only oidc: use the exec program that replaces it "+
			"(gke-gcloud-auth-plugin for gcp, kubelogin for azure)", provider.Name)
		return
	}
	for _, field := range []string{"idp-issuer-url", "client-id"} {
		if provider.Config[field].IsZero() {
			refuse("auth-provider.config", "%s is missing: oidc needs it to get tokens", field)
		}
	}
}

// readable refuses a file that cannot be opened; "" names none.
func readable(refuse func(field, format string, args ...any), field, path string) {
	if path == "" {
		return
	}
	file, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		refuse(field, "there is no such file; relative names start at the kubeconfig's folder: %w", err)
	case err != nil:
		refuse(field, "the file cannot be read: %w", err)
	default:
		_ = file.Close() // it was only read
	}
}
