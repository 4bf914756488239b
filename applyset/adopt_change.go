package applyset

import (
	"context"
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// change is an object to adopt, with its patch.
type change struct {
	*member

	label bool // make it a member
	patch []byte
	event Event
}

// collect lists the objects to change: those to apply, the members of the parent, and further objects.
func (a *adoption) collect(ctx context.Context) error {
	var err error
	if a.left, err = a.readMembers(ctx, a.record.recorded, a.desired); err != nil {
		return err
	}
	a.changes = nil
	known := map[Reference]bool{}
	add := func(m *member, label bool) {
		if !known[m.Reference] {
			known[m.Reference] = true
			a.changes = append(a.changes, &change{member: m, label: label, event: Event{Object: m.Reference, Action: Unchanged}})
		}
	}
	for _, stage := range a.desired.stages {
		for _, m := range stage {
			add(m, false)
		}
	}
	for _, m := range a.left {
		add(m, false)
	}
	for _, ref := range a.members {
		m, err := a.further(ctx, ref)
		if err != nil {
			return &ObjectError{Object: ref, Err: err}
		}
		add(m, true)
	}
	return nil
}

// further returns an object of AdoptOptions.Members.
func (a *adoption) further(ctx context.Context, ref Reference) (*member, error) {
	resource, err := a.servedKind(ctx, ref.Kind)
	if err != nil {
		return nil, err
	}
	m := &member{Reference: ref}
	switch {
	case resource == nil:
	case !resource.APIResource().Namespaced:
		m.Namespace = ""
	case m.Namespace == "":
		m.Namespace = a.opts.Namespace
	}
	if m.Reference == a.parent.Reference() {
		return nil, errors.New("it is the parent of the set")
	}
	m.setResource(resource)
	return m, nil
}

// plan reads an object, unless it has been listed, and computes its patch.
func (a *adoption) plan(ctx context.Context, c *change) {
	c.event.Err = dynamic.RetryOnConflict(ctx, func(ctx context.Context) (err error) {
		if c.live == nil {
			if err := a.get(ctx, c); c.live == nil {
				return err
			}
		}
		c.patch, c.event.Reason, err = a.patch(ctx, c)
		if apierrors.IsConflict(err) { // the object has changed between two reads
			c.live = nil
		}
		return err
	})
	if c.event.Err == nil && c.live != nil && c.patch == nil && c.label && c.live.GetLabels()[PartOfLabel] == "" {
		c.event.Action = Kept
	}
}

// get reads an object. A missing object leaves live nil.
func (a *adoption) get(ctx context.Context, c *change) (err error) {
	if c.resource != nil { // the kind is served
		c.live, err = c.resource.Get(ctx, c.Name, nil)
		if err != nil {
			c.live = nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	if c.live == nil {
		c.event.Reason = "it does not exist"
	}
	return nil
}

// patch returns the patch of the live object, nil if it needs none.
func (a *adoption) patch(ctx context.Context, c *change) (patch []byte, reason string, err error) {
	id := c.live.GetLabels()[PartOfLabel]
	if id != "" && id != a.id {
		return nil, "", &OwnedError{ID: id}
	}
	addLabel := c.label && id == ""
	if reason := keepReason(c.live); addLabel && reason != "" {
		return nil, reason, nil
	}
	metadata, reason, err := a.migration.metadata(ctx, c.resource, c.live)
	if err != nil {
		return nil, "", err
	}
	if addLabel {
		metadata["labels"] = map[string]any{PartOfLabel: a.id}
	}
	if len(metadata) == 0 {
		return nil, reason, nil
	}
	patch, err = metadataPatch(c.live, metadata)
	return patch, reason, err
}

// metadataPatch returns a merge patch of metadata. The server reports a conflict if the object has changed.
func metadataPatch(live *unstructured.Object, metadata map[string]any) ([]byte, error) {
	metadata["uid"] = live.GetUID()
	metadata["resourceVersion"] = live.GetResourceVersion()
	return json.Marshal(map[string]any{"metadata": metadata})
}

// keepReason returns why an object must not be pruned, and "" otherwise.
func keepReason(obj *unstructured.Object) string {
	annotations := obj.GetAnnotations()
	owner := ownerReason(obj)
	switch {
	case owner != "":
		return owner
	case annotations["helm.sh/resource-policy"] == "keep":
		return "its annotation helm.sh/resource-policy is keep"
	case annotations["kustomize.toolkit.fluxcd.io/prune"] == "disabled":
		return "its annotation kustomize.toolkit.fluxcd.io/prune is disabled"
	default:
		return ""
	}
}

// write sends the patch of an object. After a conflict it reads the object and computes the patch again.
func (a *adoption) write(ctx context.Context, c *change) Event {
	event := c.event
	event.Live = c.live
	if c.patch == nil || event.Err != nil {
		return event
	}
	patch := c.patch
	event.Err = dynamic.RetryOnConflict(ctx, func(ctx context.Context) (err error) {
		event.Action = Configured
		if patch == nil {
			if c.live, err = c.resource.Get(ctx, c.Name, nil); err != nil {
				return err
			}
			if patch, event.Reason, err = a.patch(ctx, c); patch == nil || err != nil {
				event.Action = Unchanged
				return err
			}
		}
		resource, err := a.writer(ctx, c.resource)
		if err != nil {
			return err
		}
		event.Live, err = a.migration.send(ctx, resource, c.Name, patch)
		patch = nil
		return err
	})
	if event.Err == nil && c.label {
		a.addMember(c.member, event.Live)
	}
	return event
}

// addMember adds a new member of the set.
func (a *adoption) addMember(m *member, live *unstructured.Object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m.live = live
	a.left = append(a.left, m)
}
