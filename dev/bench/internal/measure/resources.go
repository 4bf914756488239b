//go:build unix

package measure

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ParseResources returns the resources of the settings.
func (s *Settings) ParseResources() ([]schema.GroupVersionResource, error) {
	var all []schema.GroupVersionResource
	for _, name := range strings.Split(s.Resources, ",") {
		resource, _ := schema.ParseResourceArg(name)
		if resource == nil {
			return nil, fmt.Errorf("-resources %q: %q is not as deployments.v1.apps", s.Resources, name)
		}
		all = append(all, *resource)
	}
	return all, nil
}
