package get

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/cli/tree"
)

// findOwned sets the UIDs of the object of --for and of all objects that it owns.
func (c *eventsCommand) findOwned(ctx context.Context) error {
	switch {
	case c.forObject == "":
		return errors.New("--owned needs --for, the owner")
	case c.watch:
		return errors.New("--owned is incompatible with --watch")
	}
	client, err := c.Client(ctx)
	if err != nil {
		return err
	}
	finder := &resource.Finder{Connection: c.Connection}
	found, err := tree.Find(ctx, client, finder.Objects(ctx, []string{c.forObject}, true), nil)
	if err != nil {
		return err
	}
	if len(found.Unread) > 0 {
		c.Errorf("Warning: events may be missing: objects of %d types cannot be listed: %v", len(found.Unread), found.Unread[0])
	}
	c.involved = sets.Set[types.UID]{}
	for _, root := range found.Roots {
		c.addOwned(root, false)
	}
	return nil
}

// addOwned adds the UIDs of the subject and of the nodes below it. The nodes above it are its owners.
func (c *eventsCommand) addOwned(node *tree.Node, isOwned bool) {
	isOwned = isOwned || node.IsSubject
	if isOwned {
		c.involved.Insert(node.Object.GetUID())
	}
	for _, owned := range node.Owned {
		c.addOwned(owned, isOwned)
	}
}
