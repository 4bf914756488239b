//go:build unix

package sandbox

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/anykind/anykind/sandbox/internal/build"
)

// Component is a part of the cluster.
type Component string

// The components. Nodes is kwok, which plays nodes and their kubelets. Kubectl is a
// program for the cluster's users: it is built and not run.
const (
	Etcd              Component = "etcd"
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	Scheduler         Component = "kube-scheduler"
	Nodes             Component = "nodes"
	Kubectl           Component = "kubectl"
)

// AllComponents lists every component, in the order they are started.
func AllComponents() []Component {
	return []Component{Etcd, APIServer, ControllerManager, Scheduler, Nodes, Kubectl}
}

// Options says what to start. The zero value, or nil, is a whole cluster of the
// default version with one API server and two nodes.
type Options struct {
	// Components to build and start; empty means all. Etcd and APIServer are
	// always among them. Kubectl is only built.
	Components []Component
	// KubernetesVersion is a release such as v1.36.3, the default.
	KubernetesVersion string
	// FeatureGates go to every Kubernetes component that knows them. One that
	// kube-apiserver does not know fails the start.
	FeatureGates map[string]bool
	// RuntimeConfig is kube-apiserver's --runtime-config, such as
	// {"api/beta": "true"}.
	RuntimeConfig map[string]string
	// APIServers is how many API servers share the one etcd; 0 means 1.
	APIServers int
	// Nodes is how many fake nodes there are; 0 means 2.
	Nodes int
	// ExtraArgs are appended to a component's command line and so win over the
	// sandbox's own.
	ExtraArgs map[Component][]string

	// CacheDir keeps built binaries. Empty means $ANYKIND_SANDBOX_CACHE or
	// anykind/sandbox in the user's cache folder.
	CacheDir string
	// Progress is told, for people to read, what is being built and started.
	// Nil means silence.
	Progress io.Writer `json:"-"`
	// Log gets what happens to components afterwards. Nil means silence.
	Log *slog.Logger `json:"-"`
}

// Complete returns a checked copy of the options with every default filled in.
// Start and Build do this themselves.
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
	components, err := inOrder(c.Components)
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

// inOrder sorts the chosen components as they are started and adds what none can
// do without.
func inOrder(chosen []Component) ([]Component, error) {
	if len(chosen) == 0 {
		return AllComponents(), nil
	}
	for _, c := range chosen {
		if !slices.Contains(AllComponents(), c) {
			return nil, fmt.Errorf("there is no component %q; choose from %s", c, joinComponents(AllComponents()))
		}
	}
	return slices.DeleteFunc(AllComponents(), func(c Component) bool {
		return c != Etcd && c != APIServer && !slices.Contains(chosen, c)
	}), nil
}

// processes returns the components that run.
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
