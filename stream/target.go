package stream

import (
	"fmt"

	"github.com/anykind/anykind/transport"
)

// Target is a handle on pods, or on services or workloads that have pods, and returns paths; a *dynamic.Resource is one.
// It must be safe for concurrent use.
type Target interface {
	// Path is the path of the object of that name, such as /api/v1/namespaces/shop/pods/web-0, or that of the
	// collection with "", escaped.
	Path(name string) (string, error)
	// Conn is the connection that requests go over.
	Conn() *transport.Conn
}

// onObject adds to an error what was tried on which object.
func onObject(operation string, target Target, name string, err error) error {
	if err == nil {
		return nil
	}
	if at, locateErr := locate(target, name); locateErr == nil && !at.isPod() {
		return fmt.Errorf("%s %s: %w", operation, at, err)
	}
	return fmt.Errorf("%s pod %q: %w", operation, name, err)
}
