//go:build unix

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/sandbox/internal/build"
)

func TestOptions_CompleteSetsDefaults(t *testing.T) {
	for name, c := range map[string]struct {
		given      *Options
		components []Component
		version    string
		apiServers int
		nodes      int
	}{
		"nil":                 {nil, AllComponents(), DefaultKubernetesVersion, 1, 2},
		"zero":                {&Options{}, AllComponents(), DefaultKubernetesVersion, 1, 2},
		"etcd brings servers": {&Options{Components: []Component{Etcd}}, []Component{Etcd, APIServer}, DefaultKubernetesVersion, 1, 2},
		"kubectl":             {&Options{Components: []Component{Kubectl}}, []Component{Etcd, APIServer, Kubectl}, DefaultKubernetesVersion, 1, 2},
		"sorted": {
			&Options{Components: []Component{Nodes, Scheduler, APIServer}}, []Component{Etcd, APIServer, Scheduler, Nodes},
			DefaultKubernetesVersion, 1, 2,
		},
		"chosen": {&Options{KubernetesVersion: "v1.34.4", APIServers: 3, Nodes: 5}, AllComponents(), "v1.34.4", 3, 5},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := c.given.Complete()
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(o.Components, c.components) {
				t.Errorf("components %s, want %s", o.Components, c.components)
			}
			if o.KubernetesVersion != c.version || o.APIServers != c.apiServers || o.Nodes != c.nodes || o.Log == nil {
				t.Errorf("got %+v", o)
			}
		})
	}
}

func TestStart_RejectsInvalidOptions(t *testing.T) {
	for want, opts := range map[string]*Options{
		`unknown component "kubelet" (want etcd, kube-apiserver`: {Components: []Component{"kubelet"}},
		`"v9.9.9": want a full release name such as`:             {KubernetesVersion: "v9.9.9"},
		`"1.34": want a full release name such as`:               {KubernetesVersion: "1.34"},
	} {
		if _, err := Start(t.Context(), opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Start: %v, want %q", err, want)
		}
	}
}

func TestKubernetesVersions_HasFourMinors(t *testing.T) {
	var minors []int
	for _, version := range KubernetesVersions() {
		if err := build.CheckKubernetesVersion(version); err != nil {
			t.Error(err)
		}
		var minor int
		if _, err := fmt.Sscanf(version, "v1.%d.", &minor); err != nil {
			t.Errorf("%s: %v", version, err)
		}
		minors = append(minors, minor)
	}
	if len(minors) != 4 || !slices.IsSorted(minors) || len(slices.Compact(minors)) != 4 {
		t.Errorf("the minor versions are %d, want four in order", minors)
	}
	if !slices.Contains(KubernetesVersions(), DefaultKubernetesVersion) {
		t.Errorf("the default, %s, is not among them", DefaultKubernetesVersion)
	}
}

func TestFreePorts_AreDifferent(t *testing.T) {
	ports, err := freePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ports)
	if len(slices.Compact(ports)) != 20 {
		t.Errorf("ports come twice: %v", ports)
	}
}

// newStoppedCluster returns a cluster without running processes.
func newStoppedCluster(t *testing.T, opts *Options) *Cluster {
	t.Helper()
	o, err := opts.Complete()
	if err != nil {
		t.Fatal(err)
	}
	cache := openTestCache(t, t.TempDir())
	c, err := newCluster(o, cache)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestCluster_FilesArePrivate(t *testing.T) {
	c := newStoppedCluster(t, &Options{Components: []Component{Etcd}})
	err := filepath.WalkDir(c.Dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestCluster_KubeconfigsNameLoopback(t *testing.T) {
	c := newStoppedCluster(t, &Options{Components: []Component{Etcd}, APIServers: 2})
	if len(c.Kubeconfigs) != 2 || c.Kubeconfigs[0] != c.Kubeconfig {
		t.Fatalf("kubeconfigs %s, the first being %s", c.Kubeconfigs, c.Kubeconfig)
	}
	servers := map[string]bool{}
	for _, path := range c.Kubeconfigs {
		for _, context := range []string{"admin", "token", "limited"} {
			servers[readKubeconfig(t, path, context).server] = true
		}
	}
	if len(servers) != 2 {
		t.Errorf("two API servers, but their kubeconfigs name %v", servers)
	}
	for server := range servers {
		if !strings.HasPrefix(server, "https://127.0.0.1:") {
			t.Errorf("a kubeconfig names %s", server)
		}
	}
}

func TestCluster_LinksKubectl(t *testing.T) {
	c := newStoppedCluster(t, &Options{Components: []Component{Kubectl}})
	if len(c.members) != 2 {
		t.Errorf("%d processes, want etcd and kube-apiserver", len(c.members))
	}
	if c.Kubectl != filepath.Join(c.Dir, "bin", "kubectl") || c.Status().Kubectl != c.Kubectl {
		t.Errorf("kubectl is %s, and %s by the status", c.Kubectl, c.Status().Kubectl)
	}
	target, err := os.Readlink(c.Kubectl)
	if err != nil || !strings.HasPrefix(filepath.Base(target), "kubectl-"+c.Version) {
		t.Errorf("it links to %s: %v", target, err)
	}
	if c := newStoppedCluster(t, &Options{Components: []Component{Etcd}}); c.Kubectl != "" {
		t.Errorf("without the component, kubectl is %s", c.Kubectl)
	}
}

func TestMembers_ListenOnLoopback(t *testing.T) {
	c := newStoppedCluster(t, &Options{Components: []Component{Etcd, APIServer, ControllerManager, Scheduler}, APIServers: 2})
	if len(c.members) != 5 {
		t.Fatalf("%d processes, want 5", len(c.members))
	}
	for _, m := range c.members {
		for _, arg := range m.commandLine() {
			name, value, _ := strings.Cut(arg, "=")
			if (strings.HasSuffix(name, "-address") || strings.Contains(name, "listen")) && !strings.Contains(value, loopback) {
				t.Errorf("%s: %s", m.name, arg)
			}
		}
	}
}

func TestMembers_ExtraArgsComeLast(t *testing.T) {
	c := newStoppedCluster(t, &Options{
		Components:    []Component{Etcd},
		ExtraArgs:     map[Component][]string{APIServer: {"--authorization-mode=AlwaysAllow"}},
		RuntimeConfig: map[string]string{"api/beta": "true", "api/alpha": "false"},
	})
	m, err := c.member(string(APIServer))
	if err != nil {
		t.Fatal(err)
	}
	args := m.commandLine()
	if args[len(args)-1] != "--authorization-mode=AlwaysAllow" {
		t.Errorf("the last argument is %s", args[len(args)-1])
	}
	if !slices.Contains(args, "--runtime-config=api/alpha=false,api/beta=true") {
		t.Errorf("no runtime config in %s", args)
	}
}
