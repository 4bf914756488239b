package stream

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/anykind/anykind/internal/resourcepath"
	"github.com/anykind/anykind/transport"
)

// Target is a handle on pods, or on services or workloads with pods, such as a *dynamic.Resource. It must be safe for concurrent
// use.
type Target interface {
	// Path returns the escaped path of an object, such as /api/v1/namespaces/shop/pods/web-0, or for "" the path of the
	// collection.
	Path(name string) (string, error)
	// Conn returns the connection for requests.
	Conn() *transport.Conn
}

// objectRef is a namespaced object of the API.
type objectRef struct{ group, namespace, resource, name, path string }

// newObjectRef parses the path of a target's object.
func newObjectRef(target Target, name string) (*objectRef, error) {
	if name == "" {
		return nil, errors.New("the name is empty")
	}
	path, err := target.Path(name)
	if err != nil {
		return nil, err
	}
	parsed, ok := resourcepath.Parse(path)
	if !ok || parsed.Namespace == "" || parsed.Name == "" || parsed.Subresource != "" {
		return nil, fmt.Errorf("%s is neither a pod nor has pods in its namespace: name a pod, a service or a workload", path)
	}
	return &objectRef{group: parsed.Group, namespace: parsed.Namespace, resource: parsed.Resource, name: name, path: path}, nil
}

// String returns the object in the form used in errors.
func (r *objectRef) String() string { return r.resource + "/" + r.name }

func (r *objectRef) isPod() bool     { return r.group == "" && r.resource == "pods" }
func (r *objectRef) isService() bool { return r.group == "" && r.resource == "services" }

// podPath returns the path of a pod, or for an empty name the path of the namespace's pods.
func podPath(namespace, name string) string {
	path := "/api/v1/namespaces/" + namespace + "/pods"
	if name != "" {
		path += "/" + url.PathEscape(name)
	}
	return path
}

func operationError(operation string, target Target, name string, err error) error {
	if err == nil {
		return nil
	}
	if ref, refErr := newObjectRef(target, name); refErr == nil && !ref.isPod() {
		return fmt.Errorf("%s %s: %w", operation, ref, err)
	}
	return fmt.Errorf("%s pod %q: %w", operation, name, err)
}
