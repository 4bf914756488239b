package rbac

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/anykind/anykind/transport"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	defaultMaxNames      = 100
	defaultMaxNamespaces = 100
)

// RecorderOptions configure a [Recorder].
type RecorderOptions struct {
	// MaxNames is the number of names that a rule lists at most: a verb on more objects of a resource is allowed for all
	// of them. 0 means 100. With a negative number no rule lists names: choose it if the program works with other objects
	// than the recorded ones.
	MaxNames int
	// MaxNamespaces is the number of namespaces that get a Role: a verb on a resource in more of them is allowed by the
	// ClusterRole, in all namespaces. 0 means 100. With a negative number there are no Roles but the ClusterRole.
	MaxNamespaces int
}

// Recorder records what requests must be allowed to do. It is safe for concurrent use and for several connections. Its
// memory grows with the number of different verbs on different resources, and not with the number of requests.
type Recorder struct {
	maxNames, maxNamespaces int

	mu sync.Mutex
	// permissions are those on resources.
	permissions map[permission]*scopes
	// paths are the permissions on other paths.
	paths sets.Set[pathPermission]
}

// permission is a verb on a resource or subresource.
type permission struct{ verb, group, resource string }

// pathPermission is a verb on a path that is not a resource's.
type pathPermission struct{ verb, path string }

// scopes are the namespaces in which a permission is needed.
type scopes struct {
	all        *names            // in all namespaces, or on a cluster-scoped resource; nil if not needed
	namespaces map[string]*names // each in one
	isWidened  bool              // there were too many namespaces, and all has them
}

// names are those of the objects for which a permission is needed.
type names struct {
	all  bool             // for all of them, or those without a name yet
	some sets.Set[string] // nil if all
}

// NewRecorder returns a Recorder that has no requests yet. nil opts mean defaults.
func NewRecorder(opts *RecorderOptions) *Recorder {
	if opts == nil {
		opts = &RecorderOptions{}
	}
	return &Recorder{
		maxNames:      limit(opts.MaxNames, defaultMaxNames),
		maxNamespaces: limit(opts.MaxNamespaces, defaultMaxNamespaces),
		permissions:   map[permission]*scopes{},
		paths:         sets.Set[pathPermission]{},
	}
}

func limit(option, defaultLimit int) int {
	if option == 0 {
		return defaultLimit
	}
	return max(option, 0)
}

// OnAttempt records a request, also one that failed. It is for [transport.Options].OnAttempt, alone or called by a function
// that does more.
func (r *Recorder) OnAttempt(_ context.Context, attempt transport.Attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if attempt.Resource == "" {
		r.recordPath(attempt)
		return
	}
	resource, subresource, hasSubresource := strings.Cut(attempt.Resource, "/")
	resource, group, _ := strings.Cut(resource, ".")
	namespace := attempt.Namespace
	if group == "" && resource == "namespaces" {
		namespace = "" // a Namespace itself is cluster-scoped
	}
	if hasSubresource {
		resource += "/" + subresource
	}
	for _, verb := range verbs(attempt, group, resource) {
		p := permission{verb, group, resource}
		if !p.isGrantedToAll() {
			r.record(p, namespace, attempt.Name)
		}
	}
}

// verbs returns the verbs that the server authorizes for a request.
func verbs(attempt transport.Attempt, group, resource string) []string {
	switch attempt.Verb {
	case "get":
		// Opened by a WebSocket, which is a GET, these are authorized as create, too, since Kubernetes 1.35.
		if group == "" && (resource == "pods/exec" || resource == "pods/attach" || resource == "pods/portforward") {
			return []string{"get", "create"}
		}
	case "update", "patch":
		// Server-side apply and, of few resources, updates create what does not exist.
		if attempt.StatusCode == http.StatusCreated {
			return []string{attempt.Verb, "create"}
		}
	case "create", "list", "watch", "delete", "deletecollection":
	default:
		return []string{"*"} // the server has no verb for other methods, such as OPTIONS through a proxy
	}
	return []string{attempt.Verb}
}

// record adds a permission for one object in one namespace; "" means all.
func (r *Recorder) record(p permission, namespace, name string) {
	where := r.permissions[p]
	if where == nil {
		where = &scopes{namespaces: map[string]*names{}}
		r.permissions[p] = where
	}
	if namespace == "" && where.all == nil {
		where.all = &names{}
	}
	if namespace == "" || where.isWidened {
		where.all.add(name, r.maxNames)
		return
	}
	in := where.namespaces[namespace]
	if in == nil && len(where.namespaces) >= r.maxNamespaces {
		where.widen(r.maxNames)
		in = where.all
	} else if in == nil {
		in = &names{}
		where.namespaces[namespace] = in
	}
	in.add(name, r.maxNames)
}

// widen needs in all namespaces what was needed in some.
func (s *scopes) widen(maxNames int) {
	if s.all == nil {
		s.all = &names{}
	}
	for _, in := range s.namespaces {
		if in.all {
			s.all.add("", maxNames)
		}
		for name := range in.some {
			s.all.add(name, maxNames)
		}
	}
	s.namespaces, s.isWidened = nil, true
}

// in returns the names in a namespace, or in all for "".
func (s *scopes) in(namespace string) *names {
	switch {
	case s == nil:
		return nil
	case namespace == "":
		return s.all
	default:
		return s.namespaces[namespace]
	}
}

// add adds a name; "" means all.
func (n *names) add(name string, maxNames int) {
	if n.all {
		return
	}
	if n.some == nil {
		n.some = sets.Set[string]{}
	}
	n.some.Insert(name)
	if name == "" || len(n.some) > maxNames {
		n.all, n.some = true, nil
	}
}

func (r *Recorder) recordPath(attempt transport.Attempt) {
	p := pathPermission{attempt.Verb, attempt.Path}
	if !p.isGrantedToAll() {
		r.paths.Insert(p)
	}
}

// isGrantedToAll reports whether the ClusterRole system:discovery, which every user has, allows a request.
func (p pathPermission) isGrantedToAll() bool {
	if p.verb != "get" {
		return false
	}
	switch p.path {
	case "/livez", "/readyz", "/healthz", "/version", "/version/", "/openapi", "/api", "/apis":
		return true
	}
	return strings.HasPrefix(p.path, "/openapi/") || strings.HasPrefix(p.path, "/api/") || strings.HasPrefix(p.path, "/apis/")
}

// isGrantedToAll reports whether the ClusterRole system:basic-user, which every user has, allows a verb.
func (p permission) isGrantedToAll() bool {
	switch p.resource + "." + p.group {
	case "selfsubjectaccessreviews.authorization.k8s.io", "selfsubjectrulesreviews.authorization.k8s.io",
		"selfsubjectreviews.authentication.k8s.io":
		return p.verb == "create"
	}
	return false
}
