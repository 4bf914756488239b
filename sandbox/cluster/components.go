//go:build unix

package cluster

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/anykind/anykind/sandbox/internal/build"
)

// loopback is the listening address of all components.
const loopback = "127.0.0.1"

// createMembers creates every member with its address, arguments and readiness probe. ports has a port for each member, and two
// for etcd.
func (c *Cluster) createMembers(cache *build.Cache, ports []int) error {
	next := func() int { p := ports[0]; ports = ports[1:]; return p }
	etcd := c.newEtcd(next(), next())
	members := []*member{etcd}
	var urls []string
	for i := range c.options.APIServers {
		server := c.newAPIServer(i, next())
		if err := c.connectEtcd(server, etcd.url); err != nil {
			return err
		}
		members = append(members, server)
		urls = append(urls, server.url)
	}
	if err := c.writeKubeconfigs(urls); err != nil {
		return err
	}
	for component, describe := range map[Component]func(port int, server string) (*member, error){
		ControllerManager: c.newControllerManager,
		Scheduler:         c.newScheduler,
		Nodes: func(port int, _ string) (*member, error) {
			return c.newNodes(port, cache.StagesPath(c.options.binary(Nodes)))
		},
	} {
		if !c.options.has(component) {
			continue
		}
		m, err := describe(next(), urls[0])
		if err != nil {
			return err
		}
		members = append(members, m)
	}
	for _, m := range members {
		c.complete(m, cache)
	}
	slices.SortStableFunc(members, func(a, b *member) int {
		order := AllComponents()
		return slices.Index(order, a.component) - slices.Index(order, b.component)
	})
	c.members = members
	return nil
}

// complete sets the common fields of all members.
func (c *Cluster) complete(m *member, cache *build.Cache) {
	if m.name == "" {
		m.name = string(m.component)
	}
	binary := c.options.binary(m.component)
	m.version = binary.Version
	m.path = cache.Path(binary)
	m.log = filepath.Join(c.Dir, "logs", m.name+".log")
	m.args = append(m.args, c.options.ExtraArgs[m.component]...)
	if binary.Staging {
		m.gates = make(map[string]bool, len(c.options.FeatureGates))
		for gate, on := range c.options.FeatureGates {
			m.gates[gate] = on
		}
	}
}

func (c *Cluster) httpsProbe(url string) func(context.Context) error {
	return func(ctx context.Context) error { return get(ctx, c.client, url, nil) }
}

func httpsURL(port int) string { return fmt.Sprintf("https://%s:%d", loopback, port) }

// keyValues returns "a=1,b=2", sorted.
func keyValues(pairs iter.Seq2[string, string]) string {
	var all []string
	for key, value := range pairs {
		all = append(all, key+"="+value)
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

func (c *Cluster) newEtcd(clientPort, peerPort int) *member {
	url := httpsURL(clientPort)
	peer := httpsURL(peerPort)
	return &member{
		component: Etcd, url: url,
		credentials: &Credentials{CA: c.pki.cert("etcd-ca"), Cert: c.pki.cert("etcd-client"), Key: c.pki.key("etcd-client")},
		args: []string{
			"--name=sandbox",
			"--data-dir=" + filepath.Join(c.Dir, "etcd"),
			"--listen-client-urls=" + url, "--advertise-client-urls=" + url,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=sandbox=" + peer,
			"--cert-file=" + c.pki.cert("etcd"), "--key-file=" + c.pki.key("etcd"),
			"--trusted-ca-file=" + c.pki.cert("etcd-ca"), "--client-cert-auth",
			"--peer-cert-file=" + c.pki.cert("etcd"), "--peer-key-file=" + c.pki.key("etcd"),
			"--peer-trusted-ca-file=" + c.pki.cert("etcd-ca"), "--peer-client-cert-auth",
			// The data is temporary.
			"--unsafe-no-fsync",
			"--quota-backend-bytes=8589934592", // etcd's recommended maximum; long benchmarks exceed the default of 2 GiB
			"--log-level=warn",
		},
		probe: func(ctx context.Context) error { return get(ctx, c.etcd, url+"/health", nil) },
	}
}

// connectEtcd connects an API server to etcd: through a relay if there are several, because its cost would show in measurements.
func (c *Cluster) connectEtcd(server *member, url string) error {
	if c.options.APIServers > 1 {
		relay, err := newRelay(strings.TrimPrefix(url, "https://"))
		if err != nil {
			return err
		}
		c.relays = append(c.relays, relay)
		server.relay = relay
		url = relay.url()
	}
	server.args = append(server.args, "--etcd-servers="+url)
	return nil
}

func (c *Cluster) newAPIServer(index, port int) *member {
	m := &member{component: APIServer, url: httpsURL(port)}
	if index > 0 {
		m.name = fmt.Sprintf("%s-%d", APIServer, index+1)
	}
	m.probe = c.httpsProbe(m.url + "/readyz")
	p := c.pki
	m.args = []string{
		"--bind-address=" + loopback, fmt.Sprintf("--secure-port=%d", port),
		// The Service "kubernetes" gets no endpoints, because endpoints may not be on loopback.
		"--advertise-address=" + loopback, "--endpoint-reconciler-type=none",
		"--tls-cert-file=" + p.cert("serving"), "--tls-private-key-file=" + p.key("serving"),
		"--etcd-cafile=" + p.cert("etcd-ca"),
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

// disabledAdmission returns the admission plugins to disable without a controller manager: it creates service accounts and
// removes taints of ready nodes.
func (c *Cluster) disabledAdmission() []string {
	if c.options.has(ControllerManager) {
		return nil
	}
	return []string{"ServiceAccount", "TaintNodesByCondition"}
}

func (c *Cluster) newControllerManager(port int, server string) (*member, error) {
	kubeconfig, err := c.pki.writeComponentKubeconfig("controller-manager", server)
	if err != nil {
		return nil, err
	}
	p := c.pki
	return &member{
		component: ControllerManager, url: httpsURL(port), probe: c.httpsProbe(httpsURL(port) + "/healthz"),
		args: append(c.servingArgs(port, kubeconfig),
			"--use-service-account-credentials=true",
			"--service-account-private-key-file="+p.base("service-account.key"), "--root-ca-file="+p.cert("ca"),
			"--cluster-signing-cert-file="+p.cert("ca"), "--cluster-signing-key-file="+p.key("ca"),
			// The defaults would slow down tests.
			"--kube-api-qps=500", "--kube-api-burst=1000",
		),
	}, nil
}

func (c *Cluster) newScheduler(port int, server string) (*member, error) {
	kubeconfig, err := c.pki.writeComponentKubeconfig("scheduler", server)
	if err != nil {
		return nil, err
	}
	return &member{
		component: Scheduler, url: httpsURL(port), probe: c.httpsProbe(httpsURL(port) + "/healthz"),
		args: c.servingArgs(port, kubeconfig),
	}, nil
}

// servingArgs returns the common arguments of controller manager and scheduler.
func (c *Cluster) servingArgs(port int, kubeconfig string) []string {
	return []string{
		"--bind-address=" + loopback, fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + c.pki.cert("serving"), "--tls-private-key-file=" + c.pki.key("serving"),
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		// There is only one instance.
		"--leader-elect=false",
	}
}
