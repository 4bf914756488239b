package sharding

import (
	"context"
	"fmt"

	"github.com/anykind/anykind/dynamic"
)

// ListNamespaces returns a function for Options.Namespaces that lists all namespaces. namespaces is a handle on the resource. It needs the
// verb list on namespaces.
func ListNamespaces(namespaces *dynamic.Resource) func(ctx context.Context) ([]string, error) {
	return func(ctx context.Context) (names []string, err error) {
		for namespace, err := range namespaces.Metadata().List(ctx, nil) {
			if err != nil {
				return nil, fmt.Errorf("list the namespaces of a sharded controller: %w", err)
			}
			names = append(names, namespace.GetName())
		}
		return names, nil
	}
}
