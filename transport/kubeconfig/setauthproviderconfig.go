package kubeconfig

import (
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// SetAuthProviderConfig sets entries of a user's auth-provider config and leaves the others: the tokens an OIDC
// provider answered with. Which file the user is in says [User.Origin].
func (d *Document) SetAuthProviderConfig(user string, config map[string]string) error {
	var provider *yaml.Node
	if list := field(d.top(), "users"); list != nil && list.Kind == yaml.SequenceNode {
		if entry := named(list, user); entry != nil {
			provider = descend(entry, "user", "auth-provider")
		}
	}
	if provider == nil || provider.Kind != yaml.MappingNode {
		return fmt.Errorf("set the auth-provider's config of user %q: there is no such user with an auth-provider in this file", user)
	}
	d.edits.entry("users", user)
	entries := child(provider, "config", yaml.MappingNode)
	for _, name := range slices.Sorted(maps.Keys(config)) {
		setField(entries, name, stringNode(config[name], entries.Style&yaml.FlowStyle != 0))
	}
	return nil
}

func descend(node *yaml.Node, names ...string) *yaml.Node {
	for _, name := range names {
		if node = field(node, name); node == nil {
			return nil
		}
	}
	return node
}
