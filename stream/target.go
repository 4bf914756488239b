package stream

import (
	"fmt"

	"github.com/anykind/anykind/transport"
)

// Target is a handle on pods, or on what stands before pods, that gives paths; a *dynamic.Resource is one. It must be
// safe for concurrent use.
type Target interface {
	// Path is the path of the object of that name, such as /api/v1/namespaces/shop/pods/web-0, or that of the
	// collection with "", escaped.
	Path(name string) (string, error)
	// Conn is the connection that requests go over.
	Conn() *transport.Conn
}

// subresource is the path of one of an object's subresources.
func subresource(of Target, name, sub string) (string, error) {
	if name == "" {
		return "", fmt.Errorf("%s: the name is empty", sub)
	}
	path, err := of.Path(name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", sub, err)
	}
	return path + "/" + sub, nil
}
