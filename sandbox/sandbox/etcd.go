//go:build unix

package sandbox

import (
	"context"
	"path/filepath"
)

func (c *Cluster) describeEtcd(clientPort, peerPort int) *member {
	url, peer := httpsURL(clientPort), httpsURL(peerPort)
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
			// The data is thrown away: a power cut may take it.
			"--unsafe-no-fsync",
			"--log-level=warn",
		},
		probe: func(ctx context.Context) error { return get(ctx, c.etcd, url+"/health", nil) },
	}
}
