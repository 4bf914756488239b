package kubeconfig

import (
	"errors"
	"fmt"
)

// ErrNoContext says that no context was asked for and the file names no current one.
var ErrNoContext = errors.New("no context chosen: the kubeconfig has no current-context")

// ResolveOptions overrides what the file says, as kubectl's flags of these names do. "" means not overridden.
type ResolveOptions struct {
	// Context is taken in place of the current context.
	Context string
	// Cluster, User and Namespace are taken in place of the context's. With a Cluster no context is needed.
	Cluster   string
	User      string
	Namespace string
}

// Resolved is one context with its cluster and user looked up and found usable.
type Resolved struct {
	// Context is the context's name, and "" where a cluster was asked for and no context chosen.
	Context string
	// ContextOrigin is the file the context was read from; see [Context.Origin].
	ContextOrigin string
	// ClusterName and UserName are the entries' names. They are not always the context's: see [ResolveOptions].
	ClusterName string
	UserName    string
	// Cluster's Server is a URL with a scheme and without query and fragment, which kubectl ignores.
	Cluster Cluster
	// User holds only what kubectl would use. See [File.Resolve].
	User User
	// Namespace is the context's default namespace, "default" where it names none.
	Namespace string
}

// Resolve looks up one context, the current one where opts do not say otherwise; nil opts override nothing. An error
// names what is missing and what there is instead, or is an [*InvalidError] that lists everything kubectl would refuse
// about the entries. It opens the certificate, key and token files that are named, and reads none.
//
// What it gives is what kubectl makes of the entries: a server that is not https gets no credentials, only
// impersonation, and no TLS settings; a token, a password or a client certificate comes before an exec program, and the first two before
// an auth-provider; a key without a certificate is not used. A context without a user is anonymous. A context whose
// user does not exist is an error, although client-go takes it for anonymous too: kubectl then asks for a password.
func (f *File) Resolve(opts *ResolveOptions) (*Resolved, error) {
	if opts == nil {
		opts = &ResolveOptions{}
	}
	r, err := f.choose(opts)
	if err != nil {
		return nil, err
	}
	entries := &checking{context: r.Context}
	entries.cluster(r.ClusterName, r.Cluster)
	entries.user(r.UserName, r.User)
	if isHTTPS(r.Cluster.Server) {
		entries.secure(r)
	}
	if err := entries.err(); err != nil {
		return nil, err
	}
	if isHTTPS(r.Cluster.Server) {
		r.User = effective(r.User)
	} else {
		r.Cluster, r.User = inTheClear(r.Cluster, r.User)
	}
	r.Cluster.Server, _ = serverURL(r.Cluster.Server) // checked above
	return r, nil
}

// choose finds the entries by their names.
func (f *File) choose(opts *ResolveOptions) (*Resolved, error) {
	name := opts.Context
	if name == "" {
		name = f.CurrentContext
	}
	// An entry may be named "", and kubectl uses it.
	context, exists := f.Contexts[name]
	switch {
	case exists:
	case name != "":
		return nil, fmt.Errorf("context %q does not exist (contexts: %s)", name, names(f.Contexts))
	default:
		if _, exists := f.Clusters[""]; opts.Cluster == "" && !exists {
			return nil, fmt.Errorf("%w (contexts: %s)", ErrNoContext, names(f.Contexts))
		}
	}
	r := &Resolved{
		Context: name, ContextOrigin: context.Origin,
		ClusterName: context.Cluster, UserName: context.User, Namespace: context.Namespace,
	}
	override(&r.ClusterName, opts.Cluster)
	override(&r.UserName, opts.User)
	override(&r.Namespace, opts.Namespace)
	if r.Namespace == "" {
		r.Namespace = "default"
	}
	if r.Cluster, exists = f.Clusters[r.ClusterName]; !exists {
		if r.ClusterName == "" {
			return nil, fmt.Errorf("context %q names no cluster: set one (clusters: %s)", name, names(f.Clusters))
		}
		return nil, fmt.Errorf("context %q: cluster %q does not exist (clusters: %s)", name, r.ClusterName, names(f.Clusters))
	}
	if r.User, exists = f.Users[r.UserName]; !exists && r.UserName != "" {
		return nil, fmt.Errorf("context %q: user %q does not exist (users: %s)", name, r.UserName, names(f.Users))
	}
	return r, nil
}

func override(value *string, with string) {
	if with != "" {
		*value = with
	}
}
