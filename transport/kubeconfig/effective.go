package kubeconfig

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
)

func (u User) hasCertificate() bool {
	return u.ClientCertificate != "" || len(u.ClientCertificateData) > 0
}
func (u User) hasToken() bool { return !u.Token.IsZero() || u.TokenFile != "" }
func (u User) hasBasic() bool { return u.Username != "" || !u.Password.IsZero() }

// inTheClear leaves out what kubectl does not use without TLS. Whoever listens on the way could read credentials.
func inTheClear(c Cluster, u User) (Cluster, User) {
	c.TLSServerName, c.InsecureSkipTLSVerify, c.CertificateAuthority, c.CertificateAuthorityData = "", false, "", nil
	return c, User{
		Impersonate: u.Impersonate, ImpersonateUID: u.ImpersonateUID,
		ImpersonateGroups: u.ImpersonateGroups, ImpersonateUserExtra: u.ImpersonateUserExtra,
		Extensions: u.Extensions, Origin: u.Origin,
	}
}

// effective leaves of a user what kubectl would use. The original stays as it is.
func effective(u User) User {
	if !u.hasCertificate() {
		u.ClientKey, u.ClientKeyData = "", SecretData{}
	}
	if u.Username == "" {
		u.Password = Secret{}
	}
	if u.hasToken() || u.hasBasic() {
		u.Exec, u.AuthProvider = nil, nil
	}
	if u.hasCertificate() {
		u.Exec = nil
	}
	if u.Exec != nil {
		exec := *u.Exec
		exec.InstallHint = printable(exec.InstallHint)
		if exec.InteractiveMode == "" {
			exec.InteractiveMode = InteractiveIfAvailable
		}
		u.Exec = &exec
	}
	return u
}

func isHTTPS(server string) bool {
	parsed, err := url.Parse(server)
	return err == nil && parsed.Scheme == "https"
}

// serverURL writes a server as a URL. What has no scheme is host:port and means http to kubectl, even beside a
// certificate authority. ok is false for what is neither.
func serverURL(server string) (full string, ok bool) {
	parsed, err := url.Parse(server)
	if err != nil || parsed.Scheme == "" || parsed.Host == "" {
		parsed, err = url.Parse("http://" + server)
		if err != nil || parsed.Path != "" && parsed.Path != "/" {
			return "", false
		}
	}
	parsed.RawQuery, parsed.Fragment, parsed.ForceQuery = "", "", false
	return parsed.String(), true
}

// printable spells out what could be an escape sequence: the text comes from a file and goes to a terminal.
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
