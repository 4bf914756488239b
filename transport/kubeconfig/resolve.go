package kubeconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrNoContext says that no context was asked for and the file names no current one.
var ErrNoContext = errors.New("no context chosen: the kubeconfig has no current-context")

// Resolved is one context with its cluster and user looked up.
type Resolved struct {
	// Context is the context's name.
	Context string
	Cluster Cluster
	User    User
	// Namespace is the context's default namespace, "default" where it names none.
	Namespace string
}

// Resolve looks up the named context, or the current one when name is "". An error names what is missing and what
// there is instead. A context without a user is allowed: its requests are anonymous.
func (f *File) Resolve(name string) (*Resolved, error) {
	if name == "" {
		name = f.CurrentContext
	}
	if name == "" {
		return nil, fmt.Errorf("%w (contexts: %s)", ErrNoContext, names(f.Contexts))
	}
	context, ok := f.Contexts[name]
	if !ok {
		return nil, fmt.Errorf("context %q does not exist (contexts: %s)", name, names(f.Contexts))
	}
	cluster, ok := f.Clusters[context.Cluster]
	if !ok {
		return nil, fmt.Errorf("context %q: cluster %q does not exist (clusters: %s)", name, context.Cluster, names(f.Clusters))
	}
	if cluster.Server == "" {
		return nil, fmt.Errorf("context %q: cluster %q has no server", name, context.Cluster)
	}
	user, ok := f.Users[context.User]
	if !ok && context.User != "" {
		return nil, fmt.Errorf("context %q: user %q does not exist (users: %s)", name, context.User, names(f.Users))
	}
	namespace := context.Namespace
	if namespace == "" {
		namespace = "default"
	}
	return &Resolved{Context: name, Cluster: cluster, User: user, Namespace: namespace}, nil
}

func names[T any](entries map[string]T) string {
	if len(entries) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(entries)), ", ")
}
