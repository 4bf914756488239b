//go:build unix

package sandbox

import (
	"fmt"
	"maps"
	"strings"
)

func (c *Cluster) describeAPIServer(index, port int, etcdURL string) *member {
	m := &member{component: APIServer, url: httpsURL(port)}
	if index > 0 {
		m.name = fmt.Sprintf("%s-%d", APIServer, index+1)
	}
	m.probe = c.httpsProbe(m.url + "/readyz")
	p := c.pki
	m.args = []string{
		"--bind-address=" + loopback, fmt.Sprintf("--secure-port=%d", port),
		// The Service "kubernetes" gets no endpoints: loopback is not allowed there.
		"--advertise-address=" + loopback, "--endpoint-reconciler-type=none",
		"--tls-cert-file=" + p.cert("serving"), "--tls-private-key-file=" + p.key("serving"),
		"--etcd-servers=" + etcdURL, "--etcd-cafile=" + p.cert("etcd-ca"),
		"--etcd-certfile=" + p.cert("etcd-client"), "--etcd-keyfile=" + p.key("etcd-client"),
		"--client-ca-file=" + p.cert("ca"), "--token-auth-file=" + p.base("tokens.csv"),
		"--authorization-mode=Node,RBAC", "--allow-privileged=true",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-signing-key-file=" + p.base("service-account.key"),
		"--service-account-key-file=" + p.base("service-account.pub"),
		"--kubelet-certificate-authority=" + p.cert("ca"), "--kubelet-preferred-address-types=InternalIP",
		"--kubelet-client-certificate=" + p.cert("kubelet-client"), "--kubelet-client-key=" + p.key("kubelet-client"),
		"--enable-aggregator-routing=true",
		"--proxy-client-cert-file=" + p.cert("front-proxy-client"), "--proxy-client-key-file=" + p.key("front-proxy-client"),
		"--requestheader-client-ca-file=" + p.cert("front-proxy-ca"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
	}
	if plugins := c.disabledAdmission(); len(plugins) > 0 {
		m.args = append(m.args, "--disable-admission-plugins="+strings.Join(plugins, ","))
	}
	if len(c.options.RuntimeConfig) > 0 {
		m.args = append(m.args, "--runtime-config="+keyValues(maps.All(c.options.RuntimeConfig)))
	}
	return m
}

// disabledAdmission lists the admission plugins that wait for what only a
// controller manager does: make service accounts, and untaint ready nodes.
func (c *Cluster) disabledAdmission() []string {
	if c.options.has(ControllerManager) {
		return nil
	}
	return []string{"ServiceAccount", "TaintNodesByCondition"}
}
