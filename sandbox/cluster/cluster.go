//go:build unix

package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/anykind/anykind/sandbox/internal/build"
	"github.com/anykind/anykind/sandbox/internal/process"
)

// Cluster is a running sandbox. Its methods are safe for concurrent use; its
// fields must not be changed.
type Cluster struct {
	// Kubeconfig is the path of a kubeconfig for the first API server. Its contexts are "admin" (a client certificate; the
	// current context), "token" (an administrator with a bearer token) and "limited" (a user with only get, list and watch of
	// configmaps in namespace default).
	Kubeconfig string
	// Kubeconfigs has such a file for each API server.
	Kubeconfigs []string
	// Kubectl is the path of a kubectl of the cluster's version, in a separate folder for PATH. It is empty unless Kubectl is
	// among the components.
	Kubectl string
	// Dir holds all files of the cluster; Stop removes it.
	Dir string
	// Version is the Kubernetes version.
	Version string

	options *Options
	log     *slog.Logger
	family  *process.Family
	members []*member
	relays  []*relay
	pki     *pki
	client  *http.Client // the administrator
	etcd    *http.Client
	control *http.Server

	watchers sync.WaitGroup
	stopOnce sync.Once
	stopErr  error

	failure sync.Once
	done    chan struct{}
	err     error
}

// errStopped is the cluster's error after Stop.
var errStopped = errors.New("cluster stopped")

// newCluster creates the folder and its files. It starts no process.
func newCluster(o *Options, cache *build.Cache) (*Cluster, error) {
	dir, err := newDir()
	if err != nil {
		return nil, err
	}
	family, err := process.NewFamily(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c := &Cluster{
		Dir: dir, Version: o.KubernetesVersion, Kubeconfig: filepath.Join(dir, "kubeconfig"),
		options: o, log: o.Log, family: family, done: make(chan struct{}),
	}
	if err := c.prepare(cache); err != nil {
		c.closeRelays()
		return nil, errors.Join(err, family.Close())
	}
	return c, nil
}

func (c *Cluster) prepare(cache *build.Cache) error {
	for _, sub := range []string{"certs", "logs", "pods"} {
		if err := os.Mkdir(filepath.Join(c.Dir, sub), 0o700); err != nil {
			return err
		}
	}
	if err := c.linkKubectl(cache); err != nil {
		return err
	}
	var err error
	if c.pki, err = newPKI(filepath.Join(c.Dir, "certs")); err != nil {
		return err
	}
	ports, err := freePorts(len(AllComponents()) + c.options.APIServers) // etcd has two
	if err != nil {
		return err
	}
	if c.client, err = c.pki.clusterClient(); err != nil {
		return err
	}
	if c.etcd, err = c.pki.etcdClient(); err != nil {
		return err
	}
	return c.createMembers(cache, ports)
}

func (c *Cluster) closeRelays() {
	for _, relay := range c.relays {
		relay.close()
	}
}

// linkKubectl creates a link called kubectl: the name in the cache has a version.
func (c *Cluster) linkKubectl(cache *build.Cache) error {
	if !c.options.has(Kubectl) {
		return nil
	}
	dir := filepath.Join(c.Dir, "bin")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	c.Kubectl = filepath.Join(dir, string(Kubectl))
	return os.Symlink(cache.Path(c.options.binary(Kubectl)), c.Kubectl)
}

// maxDirLength leaves room for the name of a unix socket: macOS limits a socket's path to 104 bytes.
const maxDirLength = 85

func newDir() (string, error) {
	dir, err := os.MkdirTemp("", "anykind-")
	if err == nil && len(dir) > maxDirLength {
		_ = os.Remove(dir)
		dir, err = os.MkdirTemp("/tmp", "anykind-")
	}
	if err != nil {
		return "", fmt.Errorf("create the cluster's folder: %w (set TMPDIR to a writable one)", err)
	}
	// The components resolve symbolic links, so the returned paths must be resolved, too.
	if resolved, err := filepath.EvalSymlinks(dir); err == nil && len(resolved) <= maxDirLength {
		dir = resolved
	}
	return dir, nil
}

// Done returns a channel that is closed when a component dies unexpectedly, and by Stop.
func (c *Cluster) Done() <-chan struct{} { return c.done }

// Err returns the reason for the closing of Done: the *DiedError of the first dead component, or an error for Stop. It returns
// nil while Done is open.
func (c *Cluster) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

func (c *Cluster) fail(err error) {
	c.failure.Do(func() {
		c.err = err
		close(c.done)
	})
}

// Stop kills every process and removes the folder with all data. It may be called
// more than once. ctx bounds only the wait for requests to the control socket.
func (c *Cluster) Stop(ctx context.Context) error {
	c.stopOnce.Do(func() {
		for _, m := range c.members {
			m.detach()
		}
		c.fail(errStopped)
		c.stopErr = c.family.Close()
		c.closeRelays()
		// Without processes, pending calls fail soon and new calls at once.
		for _, m := range c.members {
			m.waitUntilIdle()
		}
		if c.control != nil && c.control.Shutdown(ctx) != nil {
			_ = c.control.Close()
		}
		c.watchers.Wait()
		c.client.CloseIdleConnections()
		c.etcd.CloseIdleConnections()
	})
	if c.stopErr != nil {
		return fmt.Errorf("stop cluster: %w", c.stopErr)
	}
	return nil
}
