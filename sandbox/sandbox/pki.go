//go:build unix

package sandbox

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/anykind/anykind/sandbox/internal/certs"
)

// pki is every key and certificate of a cluster. etcd has its own authority, so
// that no user of the cluster can talk to it.
type pki struct {
	dir        string
	ca         *certs.Authority
	etcdCA     *certs.Authority
	frontProxy *certs.Authority

	admin, limited, etcdAdmin *certs.Pair
	token                     string
}

func newPKI(dir string) (*pki, error) {
	p := &pki{dir: dir, token: rand.Text()}
	for name, to := range map[string]**certs.Authority{"ca": &p.ca, "etcd-ca": &p.etcdCA, "front-proxy-ca": &p.frontProxy} {
		authority, err := certs.NewAuthority("anykind-sandbox-" + name)
		if err != nil {
			return nil, err
		}
		if err := authority.Write(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
		*to = authority
	}
	if err := p.issueAll(); err != nil {
		return nil, err
	}
	return p, p.writeSecrets()
}

func (p *pki) issueAll() error {
	issue := func(file string, to **certs.Pair, pair *certs.Pair, err error) error {
		if err != nil {
			return err
		}
		if to != nil {
			*to = pair
		}
		return pair.Write(p.base(file))
	}
	client := func(a *certs.Authority, file string, to **certs.Pair, user string, groups ...string) error {
		pair, err := a.Client(user, groups...)
		return issue(file, to, pair, err)
	}
	server := func(a *certs.Authority, file string) error {
		pair, err := a.Server(file)
		return issue(file, nil, pair, err)
	}
	return firstError(
		func() error { return client(p.ca, "admin", &p.admin, "admin", "system:masters") },
		func() error { return client(p.ca, "limited", &p.limited, "limited") },
		func() error { return client(p.ca, "controller-manager", nil, "system:kube-controller-manager") },
		func() error { return client(p.ca, "scheduler", nil, "system:kube-scheduler") },
		func() error { return client(p.ca, "kubelet-client", nil, "kube-apiserver", "system:masters") },
		func() error { return client(p.frontProxy, "front-proxy-client", nil, "front-proxy-client") },
		func() error { return client(p.etcdCA, "etcd-client", &p.etcdAdmin, "kube-apiserver") },
		func() error { return server(p.etcdCA, "etcd") },
		func() error { return server(p.ca, "serving") },
	)
}

func firstError(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// writeSecrets writes what is no certificate.
func (p *pki) writeSecrets() error {
	private, public, err := certs.ServiceAccountKey()
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"service-account.key": private,
		"service-account.pub": public,
		"tokens.csv":          fmt.Appendf(nil, "%s,token-admin,token-admin,\"system:masters\"\n", p.token),
	} {
		if err := os.WriteFile(filepath.Join(p.dir, name), text, 0o600); err != nil {
			return fmt.Errorf("writing a secret: %w", err)
		}
	}
	return nil
}

func (p *pki) base(name string) string { return filepath.Join(p.dir, name) }
func (p *pki) cert(name string) string { return p.base(name) + ".crt" }
func (p *pki) key(name string) string  { return p.base(name) + ".key" }

// probeTimeout bounds one request of the sandbox's own.
const probeTimeout = 10 * time.Second

// clusterClient is an HTTP client that acts as the administrator.
func (p *pki) clusterClient() (*http.Client, error) { return newClient(p.ca, p.admin) }

// etcdClient is an HTTP client for etcd's JSON gateway.
func (p *pki) etcdClient() (*http.Client, error) { return newClient(p.etcdCA, p.etcdAdmin) }

func newClient(authority *certs.Authority, identity *certs.Pair) (*http.Client, error) {
	certificate, err := tls.X509KeyPair(identity.Cert, identity.Key)
	if err != nil {
		return nil, fmt.Errorf("reading a client certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.Cert)
	return &http.Client{
		Timeout: probeTimeout,
		Transport: &http.Transport{
			// No proxy: everything is on loopback.
			TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}},
			ForceAttemptHTTP2: true,
		},
	}, nil
}
