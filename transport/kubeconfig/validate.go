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

// InvalidError lists the problems of a context's entries. errors.Is and errors.As examine Problems.
type InvalidError struct {
	Context string // the context's name
	// Problems each name the entry, its field, the cause and a remedy. There is at least one problem.
	Problems []error
}

// Error joins the problems.
func (e *InvalidError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, problem := range e.Problems {
		texts[i] = problem.Error()
	}
	return fmt.Sprintf("context %q: %s", e.Context, strings.Join(texts, "; "))
}

// Unwrap returns the problems.
func (e *InvalidError) Unwrap() []error { return e.Problems }

// validator collects the reasons for kubectl to reject an entry: the rules of clientcmd's validation, and of client-go's
// connection set-up.
type validator struct {
	entry    string // for errors, with its file if known
	problems []error
}

func newValidator(kind, name, origin string) *validator {
	entry := fmt.Sprintf("%s %q", kind, name)
	if origin != "" {
		entry += " in " + origin
	}
	return &validator{entry: entry}
}

func (v *validator) reject(field, format string, args ...any) {
	v.problems = append(v.problems, fmt.Errorf("%s: %s: "+format, append([]any{v.entry, field}, args...)...))
}

// validate returns an [*InvalidError] if kubectl rejects the entries.
func (r *ResolvedContext) validate() error {
	cluster := newValidator("cluster", r.ClusterName, r.Cluster.Origin)
	user := newValidator("user", r.UserName, r.User.Origin)
	cluster.validateCluster(r.Cluster)
	user.validateUser(r.User)
	if isHTTPS(r.Cluster.Server) { // without TLS, kubectl ignores the rest
		cluster.validateTLS(r.Cluster)
		user.validateCredentials(r.User)
	}
	if problems := slices.Concat(cluster.problems, user.problems); len(problems) > 0 {
		return &InvalidError{Context: r.ContextName, Problems: problems}
	}
	return nil
}

func (v *validator) validateCluster(cluster Cluster) {
	if cluster.Server == "" {
		v.reject("server", "missing (set the URL, such as https://host:6443)")
	} else if _, ok := serverURL(cluster.Server); !ok {
		v.reject("server", "not a URL (write it as https://host:6443)")
	}
	if !cluster.ProxyURL.IsZero() {
		if proxy, err := url.Parse(cluster.ProxyURL.Reveal()); err != nil {
			v.reject("proxy-url", "not a URL (write it as http://host:3128)") // the error would quote a password
		} else if !slices.Contains([]string{"http", "https", "socks5"}, proxy.Scheme) {
			v.reject("proxy-url", "unknown scheme %q (use http, https or socks5)", proxy.Scheme)
		}
	}
	v.validateFile("certificate-authority", cluster.CertificateAuthority, len(cluster.CertificateAuthorityData) > 0)
}

func (v *validator) validateTLS(cluster Cluster) {
	if cluster.InsecureSkipTLSVerify && (cluster.CertificateAuthority != "" || len(cluster.CertificateAuthorityData) > 0) {
		v.reject("insecure-skip-tls-verify", "a certificate authority is set, too, and would be ignored (delete one)")
	}
}

func (v *validator) validateUser(user User) {
	if !user.Token.IsZero() && user.hasBasic() {
		v.reject("token", "username or password is set, too, and only one of token and basic authentication can be sent (delete one)")
	}
	if user.hasCertificate() {
		v.validateFile("client-certificate", user.ClientCertificate, len(user.ClientCertificateData) > 0)
		v.validateFile("client-key", user.ClientKey, !user.ClientKeyData.IsZero())
		if user.ClientKey == "" && user.ClientKeyData.IsZero() {
			v.reject("client-key", "a client certificate needs its key (set client-key or client-key-data)")
		}
	}
	if user.Impersonate == "" && (user.ImpersonateUID != "" || len(user.ImpersonateGroups) > 0 || len(user.ImpersonateUserExtra) > 0) {
		v.reject("as", "missing: as-uid, as-groups and as-user-extra need a user to impersonate (set it, or delete them)")
	}
	if user.Exec != nil {
		v.validateExec(user.Exec, user.AuthProvider != nil)
	}
}

func (v *validator) validateExec(exec *Exec, hasAuthProvider bool) {
	if hasAuthProvider {
		v.reject("exec", "auth-provider is set, too (delete one)")
	}
	if exec.Command == "" {
		v.reject("exec.command", "missing (name the program that prints the credentials)")
	}
	if exec.APIVersion == "" {
		v.reject("exec.apiVersion", "missing (set %s)", ExecV1)
	}
	for i, env := range exec.Env {
		if env.Name == "" {
			v.reject("exec.env", "variable %d has no name (name or delete it)", i+1)
		}
	}
	switch exec.InteractiveMode {
	case InteractiveNever, InteractiveIfAvailable, InteractiveAlways:
	case "":
		// Versions before v1 did not have the field.
		if exec.APIVersion != ExecV1Beta1 && exec.APIVersion != "client.authentication.k8s.io/v1alpha1" {
			v.reject("exec.interactiveMode", "missing (set Never, IfAvailable or Always)")
		}
	default:
		v.reject("exec.interactiveMode", "unknown mode %q (set Never, IfAvailable or Always)", exec.InteractiveMode)
	}
}

// validateCredentials validates the credentials sent over TLS only.
func (v *validator) validateCredentials(user User) {
	if user.TokenFile != "" && user.Token.IsZero() {
		if user.Username != "" {
			v.reject("tokenFile", "username is set, too, and only one of token and basic authentication can be sent (delete one)")
		}
		v.validateFile("tokenFile", user.TokenFile, false)
		if info, err := os.Stat(user.TokenFile); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
			v.reject("tokenFile", "%s is empty (write a token to it)", user.TokenFile)
		}
	}
	if exec := user.Exec; exec != nil && exec.APIVersion != "" && exec.APIVersion != ExecV1 && exec.APIVersion != ExecV1Beta1 {
		v.reject("exec.apiVersion", "unknown version %q (set %s or v1beta1, whichever the program supports)", exec.APIVersion, ExecV1)
	}
	switch provider := user.AuthProvider; {
	case provider == nil:
	case provider.Name != "oidc":
		v.reject("auth-provider.name", "kubectl no longer supports %q, only oidc (use the exec program that replaces it: "+
			"gke-gcloud-auth-plugin for gcp, kubelogin for azure)", provider.Name)
	default:
		for _, field := range []string{"idp-issuer-url", "client-id"} {
			if provider.Config[field].IsZero() {
				v.reject("auth-provider.config", "%s is missing (oidc needs it to get tokens)", field)
			}
		}
	}
}

// validateFile rejects a file that cannot be opened, or a file in addition to inline data. The path may be empty.
func (v *validator) validateFile(field, path string, hasData bool) {
	if path == "" {
		return
	}
	if hasData {
		v.reject(field, "%s-data is set, too (delete one)", field)
	}
	file, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.reject(field, "%w (relative names start at the kubeconfig's folder)", err)
	case err != nil:
		v.reject(field, "%w", err)
	default:
		file.Close()
	}
}
