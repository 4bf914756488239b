package plan

import (
	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/unstructured"
)

// Compare returns the change between two states of an object, nil for an absent object: Create, Configure, Replace (a different UID),
// Delete or Unchanged. Fields that the server assigns to each write are not compared.
func Compare(live, planned *unstructured.Object) *Change {
	known := planned
	if known == nil {
		known = live
	}
	c := &Change{
		Object:     applyset.ReferenceTo(known),
		APIVersion: known.GetAPIVersion(), Live: live, Planned: planned, Action: Unchanged,
	}
	switch {
	case live == nil:
		c.Action = Create
	case planned == nil:
		c.Action = Delete
	default:
		c.Fields = changedFields(live, planned)
		if live.GetUID() != planned.GetUID() {
			c.Action = Replace
		} else if len(c.Fields) > 0 {
			c.Action = Configure
		}
	}
	return c
}
