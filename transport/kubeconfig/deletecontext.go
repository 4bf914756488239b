package kubeconfig

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// DeleteContext deletes a context. As with kubectl its cluster and user stay, and so does a current-context that
// names it.
func (d *Document) DeleteContext(name string) error {
	list := field(d.top(), "contexts")
	if list == nil || list.Kind != yaml.SequenceNode || named(list, name) == nil {
		return fmt.Errorf("delete context %q: there is none of that name in this file", name)
	}
	entry := named(list, name)
	d.edits.entry("contexts", name)
	list.Content = slices.DeleteFunc(list.Content, func(other *yaml.Node) bool { return other == entry })
	return nil
}
