//go:build unix

package sandbox

import "fmt"

func (c *Cluster) describeControllerManager(port int, server string) (*member, error) {
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
			// The defaults are for clusters that must be protected from their controllers.
			"--kube-api-qps=500", "--kube-api-burst=1000",
		),
	}, nil
}

func (c *Cluster) describeScheduler(port int, server string) (*member, error) {
	kubeconfig, err := c.pki.writeComponentKubeconfig("scheduler", server)
	if err != nil {
		return nil, err
	}
	return &member{
		component: Scheduler, url: httpsURL(port), probe: c.httpsProbe(httpsURL(port) + "/healthz"),
		args: c.servingArgs(port, kubeconfig),
	}, nil
}

// servingArgs is what controller manager and scheduler have in common.
func (c *Cluster) servingArgs(port int, kubeconfig string) []string {
	return []string{
		"--bind-address=" + loopback, fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + c.pki.cert("serving"), "--tls-private-key-file=" + c.pki.key("serving"),
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		// There is only one, and it should work at once.
		"--leader-elect=false",
	}
}
