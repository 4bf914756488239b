//go:build unix

package cluster

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/anykind/anykind/sandbox/internal/build"
)

// Component is a program of the cluster.
type Component string

// The components. Nodes is kwok, which simulates nodes and their kubelets. Kubectl is
// built but not run.
const (
	Etcd              Component = "etcd"
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	Scheduler         Component = "kube-scheduler"
	Nodes             Component = "nodes"
	Kubectl           Component = "kubectl"
)

// AllComponents returns every component, in start order.
func AllComponents() []Component {
	return []Component{Etcd, APIServer, ControllerManager, Scheduler, Nodes, Kubectl}
}

// Options configure a cluster. The zero value, or nil, is a whole cluster of the
// default version with one API server and two nodes.
type Options struct {
	// Components to build and start; empty means all. Etcd and APIServer are
	// always included.
	Components []Component
	// KubernetesVersion is a release such as v1.36.3, the default.
	KubernetesVersion string
	// FeatureGates are passed to every Kubernetes component with this gate. A gate unknown to kube-apiserver is an error.
	FeatureGates map[string]bool
	// RuntimeConfig is kube-apiserver's --runtime-config, such as
	// {"api/beta": "true"}.
	RuntimeConfig map[string]string
	// APIServers is the number of API servers on a common etcd; 0 means 1.
	APIServers int
	// Nodes is the number of fake nodes; 0 means 2.
	Nodes int
	// ExtraArgs are appended to a component's command line and so override the
	// sandbox's own.
	ExtraArgs map[Component][]string

	// CacheDir keeps built binaries. Empty means $ANYKIND_SANDBOX_CACHE or
	// anykind/sandbox in the user's cache folder.
	CacheDir string
	// Progress receives lines about builds and starts; nil discards them.
	Progress io.Writer `json:"-"`
	// Log receives later events of components; nil discards them.
	Log *slog.Logger `json:"-"`
}

// Complete returns a validated copy of the options with all defaults set. Start and
// Build call it.
func (o *Options) Complete() (*Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	if c.KubernetesVersion == "" {
		c.KubernetesVersion = build.KubernetesVersion
	}
	if err := build.CheckKubernetesVersion(c.KubernetesVersion); err != nil {
		return nil, err
	}
	components, err := completeComponents(c.Components)
	if err != nil {
		return nil, err
	}
	c.Components = components
	c.APIServers = max(c.APIServers, 1)
	if c.Nodes <= 0 {
		c.Nodes = 2
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &c, nil
}

// completeComponents returns the chosen components in start order, with etcd and kube-apiserver.
func completeComponents(chosen []Component) ([]Component, error) {
	if len(chosen) == 0 {
		return AllComponents(), nil
	}
	for _, c := range chosen {
		if !slices.Contains(AllComponents(), c) {
			return nil, fmt.Errorf("unknown component %q (want %s)", c, joinComponents(AllComponents()))
		}
	}
	return slices.DeleteFunc(AllComponents(), func(c Component) bool {
		return c != Etcd && c != APIServer && !slices.Contains(chosen, c)
	}), nil
}

// processes returns the components with a process.
func (o *Options) processes() []Component {
	return slices.DeleteFunc(slices.Clone(o.Components), func(c Component) bool { return c == Kubectl })
}

func joinComponents(components []Component) string {
	names := make([]string, len(components))
	for i, c := range components {
		names[i] = string(c)
	}
	return strings.Join(names, ", ")
}

func (o *Options) has(c Component) bool { return slices.Contains(o.Components, c) }

// binary returns the program of c.
func (o *Options) binary(c Component) build.Binary {
	switch c {
	case Etcd:
		return build.Etcd()
	case Nodes:
		return build.Kwok()
	default:
		return build.Kubernetes(string(c), o.KubernetesVersion)
	}
}

// DefaultKubernetesVersion is the default Kubernetes release.
const DefaultKubernetesVersion = build.KubernetesVersion

// KubernetesVersions returns the releases tested by `make matrix`, a release of each supported minor version, oldest first.
func KubernetesVersions() []string {
	return []string{"v1.34.4", "v1.35.4", DefaultKubernetesVersion, "v1.37.1"}
}
