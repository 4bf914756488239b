//go:build unix

package cluster

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/anykind/anykind/sandbox/internal/certs"
)

// pki holds the keys and certificates of a cluster. etcd has its own authority, so
// that no user of the cluster has access to it.
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

// writeSecrets writes the service account keys and the tokens.
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
			return fmt.Errorf("write secret: %w", err)
		}
	}
	return nil
}

func (p *pki) base(name string) string { return filepath.Join(p.dir, name) }
func (p *pki) cert(name string) string { return p.base(name) + ".crt" }
func (p *pki) key(name string) string  { return p.base(name) + ".key" }

// requestTimeout bounds a request to a component.
const requestTimeout = 10 * time.Second

// clusterClient returns an HTTP client with the administrator's certificate.
func (p *pki) clusterClient() (*http.Client, error) { return newClient(p.ca, p.admin) }

// etcdClient returns an HTTP client for etcd's JSON gateway.
func (p *pki) etcdClient() (*http.Client, error) { return newClient(p.etcdCA, p.etcdAdmin) }

func newClient(authority *certs.Authority, pair *certs.Pair) (*http.Client, error) {
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, fmt.Errorf("read client certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.Cert)
	return &http.Client{
		Timeout: requestTimeout,
		Transport: &http.Transport{
			// No proxy: everything is on loopback.
			TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}},
			ForceAttemptHTTP2: true,
		},
	}, nil
}

// kubeconfigText is a kubeconfig with inline data, for copying.
const kubeconfigText = `apiVersion: v1
kind: Config
clusters:
- name: sandbox
  cluster:
    server: %[1]s
    certificate-authority-data: %[2]s
users:
- name: admin
  user:
    client-certificate-data: %[3]s
    client-key-data: %[4]s
- name: token
  user:
    token: %[5]s
- name: limited
  user:
    client-certificate-data: %[6]s
    client-key-data: %[7]s
contexts:
- name: admin
  context: {cluster: sandbox, user: admin, namespace: default}
- name: token
  context: {cluster: sandbox, user: token, namespace: default}
- name: limited
  context: {cluster: sandbox, user: limited, namespace: default}
current-context: admin
`

// kubeconfig returns the kubeconfig for the API server at url.
func (p *pki) kubeconfig(url string) string {
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf(kubeconfigText, url, b64(p.ca.Cert),
		b64(p.admin.Cert), b64(p.admin.Key), p.token, b64(p.limited.Cert), b64(p.limited.Key))
}

// writeKubeconfigs writes kubeconfig, kubeconfig-2, … for the API servers.
func (c *Cluster) writeKubeconfigs(urls []string) error {
	for i, url := range urls {
		path := c.Kubeconfig
		if i > 0 {
			path = fmt.Sprintf("%s-%d", path, i+1)
		}
		if err := os.WriteFile(path, []byte(c.pki.kubeconfig(url)), 0o600); err != nil {
			return fmt.Errorf("write kubeconfig: %w", err)
		}
		c.Kubeconfigs = append(c.Kubeconfigs, path)
	}
	return nil
}

// writeComponentKubeconfig writes the kubeconfig of a component with the certificate called user.
func (p *pki) writeComponentKubeconfig(user, url string) (string, error) {
	path := filepath.Join(p.dir, user+".kubeconfig")
	text := strings.Join([]string{
		"apiVersion: v1", "kind: Config", "current-context: sandbox",
		"clusters: [{name: sandbox, cluster: {server: " + quote(url) + ", certificate-authority: " + quote(p.cert("ca")) + "}}]",
		"users: [{name: self, user: {client-certificate: " + quote(p.cert(user)) + ", client-key: " + quote(p.key(user)) + "}}]",
		"contexts: [{name: sandbox, context: {cluster: sandbox, user: self}}]", "",
	}, "\n")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("write kubeconfig of %s: %w", user, err)
	}
	return path, nil
}

// quote returns text as a YAML string.
func quote(text string) string { return fmt.Sprintf("%q", text) }
