package rbac

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/anykind/anykind/transport"
)

const (
	defaultMaxNames      = 100
	defaultMaxNamespaces = 100
)

// RecorderOptions configure a [Recorder].
type RecorderOptions struct {
	// MaxNames limits the resource names of a rule. A verb on more objects of a resource is allowed for all objects. 0 means 100.
	// With a negative number no rule lists names: choose this if the objects of later runs may have different names.
	MaxNames int
	// MaxNamespaces limits the namespaces with a Role. A verb on a resource in more namespaces is allowed in all namespaces, by
	// the ClusterRole. 0 means 100. With a negative number there is only the ClusterRole.
	MaxNamespaces int
}

// Recorder records the permissions required by requests. It is safe for concurrent use and for several connections. Its memory
// grows with the number of different verbs and resources, and not with the number of requests.
type Recorder struct {
	maxNames, maxNamespaces int

	mu          sync.Mutex
	permissions map[permission]scopes
	// widened has the permissions needed in more than maxNamespaces namespaces. They are granted in all namespaces.
	widened sets.Set[permission]
}

// permission is a verb on a resource, a subresource or a non-resource path.
type permission struct {
	verb, group, resource string
	isPath                bool // resource is the path
}

// scopes maps namespaces to the names of the objects for which a permission is needed. The namespace "" stands for all
// namespaces, and for cluster-scoped resources and paths. The name "" stands for all objects, and then has no names beside it.
type scopes map[string]sets.Set[string]

// NewRecorder returns an empty Recorder. nil opts mean defaults.
func NewRecorder(opts *RecorderOptions) *Recorder {
	if opts == nil {
		opts = &RecorderOptions{}
	}
	return &Recorder{
		maxNames:      max(cmp.Or(opts.MaxNames, defaultMaxNames), 0),
		maxNamespaces: max(cmp.Or(opts.MaxNamespaces, defaultMaxNamespaces), 0),
		permissions:   map[permission]scopes{},
		widened:       sets.Set[permission]{},
	}
}

// OnAttempt records a request, including failed requests. It is for [transport.Options].OnAttempt, directly or through a wrapper.
func (r *Recorder) OnAttempt(_ context.Context, attempt transport.Attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if attempt.Resource == "" {
		r.record(permission{verb: attempt.Verb, resource: attempt.Path, isPath: true}, "", "")
		return
	}
	resource, subresource, hasSubresource := strings.Cut(attempt.Resource, "/")
	resource, group := cutGroup(resource, attempt.Path)
	namespace := attempt.Namespace
	if group == "" && resource == "namespaces" {
		namespace = "" // a Namespace itself is cluster-scoped
	}
	if hasSubresource {
		resource += "/" + subresource
	}
	for _, verb := range verbs(attempt, group, resource) {
		r.record(permission{verb: verb, group: group, resource: resource}, namespace, attempt.Name)
	}
}

// cutGroup returns the resource and the group of "deployments.apps". The resource itself may contain dots in metrics APIs:
// ingresses.networking.k8s.io of the group custom.metrics.k8s.io. The path of the request has the group alone.
func cutGroup(text, path string) (resource, group string) {
	if rest, found := strings.CutPrefix(path, "/apis/"); found {
		group, _, _ = strings.Cut(rest, "/")
		if resource, found = strings.CutSuffix(text, "."+group); found {
			return resource, group
		}
	}
	resource, group, _ = strings.Cut(text, ".")
	return resource, group
}

// verbs returns the verbs authorized by the server for a request.
func verbs(attempt transport.Attempt, group, resource string) []string {
	switch attempt.Verb {
	case "get":
		// Since Kubernetes 1.35, these WebSocket requests (GET) are authorized as create, too.
		if group == "" && (resource == "pods/exec" || resource == "pods/attach" || resource == "pods/portforward") {
			return []string{"get", "create"}
		}
	case "update", "patch":
		// Server-side apply creates missing objects, and so do updates of a few resources.
		if attempt.StatusCode == http.StatusCreated {
			return []string{attempt.Verb, "create"}
		}
	case "create", "list", "watch", "delete", "deletecollection":
	default:
		return []string{"*"} // the server has no verb for further methods, such as OPTIONS through a proxy
	}
	return []string{attempt.Verb}
}

// record adds a permission for an object in a namespace; "" means all.
func (r *Recorder) record(p permission, namespace, name string) {
	if p.isGrantedToAll() {
		return
	}
	needed := r.permissions[p]
	if needed == nil {
		needed = scopes{}
		r.permissions[p] = needed
	}
	if r.widened.Has(p) {
		namespace = ""
	}
	needed.add(namespace, name, r.maxNames)
	namespaces := len(needed)
	if needed[""] != nil {
		namespaces--
	}
	if namespaces > r.maxNamespaces {
		r.widened.Insert(p)
		needed.widen(r.maxNames)
	}
}

func (s scopes) add(namespace, name string, maxNames int) {
	names := s[namespace]
	switch {
	case names == nil:
		names = sets.Set[string]{}
		s[namespace] = names
	case names.Has(""):
		return
	}
	names.Insert(name)
	if name == "" || len(names) > maxNames {
		clear(names)
		names.Insert("")
	}
}

// widen moves the names of all namespaces to the namespace "".
func (s scopes) widen(maxNames int) {
	for namespace, names := range s {
		if namespace == "" {
			continue
		}
		for name := range names {
			s.add("", name, maxNames)
		}
		delete(s, namespace)
	}
}

// isGrantedToAll reports whether the ClusterRoles system:discovery and system:basic-user grant p. Every user has these roles.
func (p permission) isGrantedToAll() bool {
	switch {
	case p.isPath && p.verb == "get":
		switch p.resource {
		case "/livez", "/readyz", "/healthz", "/version", "/version/", "/openapi", "/api", "/apis":
			return true
		}
		return strings.HasPrefix(p.resource, "/openapi/") || strings.HasPrefix(p.resource, "/api/") || strings.HasPrefix(p.resource, "/apis/")
	case p.verb == "create":
		switch p.resource + "." + p.group {
		case "selfsubjectaccessreviews.authorization.k8s.io", "selfsubjectrulesreviews.authorization.k8s.io",
			"selfsubjectreviews.authentication.k8s.io":
			return true
		}
	}
	return false
}
