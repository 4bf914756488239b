package apitest

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"

	"github.com/anykind/anykind/apitest/internal/access"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// User is a user with a bearer token.
type User struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
	Token     string
}

// SetUsers replaces Options.Users, like a rotation of credentials. Later requests with a token of a removed user get 401. Running
// watches continue.
func (s *Server) SetUsers(users []User) { s.access.SetAccounts(accounts(users)) }

// accounts returns the admin and users.
func accounts(users []User) []access.Account {
	accounts := []access.Account{{User: admin(), Token: adminToken}}
	for _, u := range users {
		accounts = append(accounts, access.Account{
			User: access.User{Name: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra}, Token: u.Token,
		})
	}
	return accounts
}

// ConfigFor returns a configuration that authenticates with the token of an Options.Users entry or of a service account.
func (s *Server) ConfigFor(token string) *transport.Config {
	cfg := s.Config()
	cfg.Token = kubeconfig.NewSecret(token)
	return cfg
}

// ClientCertificate returns a client certificate of a user and its key in PEM. The server accepts it as a credential.
func (s *Server) ClientCertificate(user string, groups ...string) (certPEM, keyPEM []byte, err error) {
	authority, err := sharedAuthority()
	if err == nil {
		certPEM, keyPEM, err = authority.sign(&x509.Certificate{
			Subject: pkix.Name{CommonName: user, Organization: groups}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("create a certificate of %q: %w", user, err)
	}
	return certPEM, keyPEM, nil
}
