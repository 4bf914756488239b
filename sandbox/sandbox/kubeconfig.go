//go:build unix

package sandbox

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// kubeconfigText is a kubeconfig for people to read: everything is inline, so
// the file may be copied elsewhere.
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

// kubeconfig is the text of the kubeconfig for the API server at url.
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
			return fmt.Errorf("writing a kubeconfig: %w", err)
		}
		c.Kubeconfigs = append(c.Kubeconfigs, path)
	}
	return nil
}

// writeComponentKubeconfig writes the kubeconfig of a component that logs in with
// the certificate called user.
func (p *pki) writeComponentKubeconfig(user, url string) (string, error) {
	path := filepath.Join(p.dir, user+".kubeconfig")
	text := strings.Join([]string{
		"apiVersion: v1", "kind: Config", "current-context: sandbox",
		"clusters: [{name: sandbox, cluster: {server: " + quote(url) + ", certificate-authority: " + quote(p.cert("ca")) + "}}]",
		"users: [{name: self, user: {client-certificate: " + quote(p.cert(user)) + ", client-key: " + quote(p.key(user)) + "}}]",
		"contexts: [{name: sandbox, context: {cluster: sandbox, user: self}}]", "",
	}, "\n")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
	}
	return path, nil
}

// quote makes a YAML string of text.
func quote(text string) string { return fmt.Sprintf("%q", text) }
