package applyset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/unstructured/manifest"
)

// AdoptOptions configure [Set.Adopt].
type AdoptOptions struct {
	// Members are further objects of the previous tool, for example from [FluxInventory] or [HelmRelease]. They become members of the
	// set. The next Apply deletes members that are not among its objects.
	Members []Reference
	// Managers selects the entries of managedFields whose fields the set takes over. FieldsV1 is not set. nil means [KubectlManagers].
	Managers func(metav1.ManagedFieldsEntry) bool
	// DryRun writes nothing. The server checks every write to an object.
	DryRun bool
	// OnEvent is called after every object. Calls are serialized.
	OnEvent func(Event)
}

// KubectlManagers selects the entries of kubectl: of client-side and server-side apply, and of its other commands. Writes to the
// subresource status are not selected. A HorizontalPodAutoscaler keeps the replicas, because its manager has a different name.
func KubectlManagers(entry metav1.ManagedFieldsEntry) bool {
	return (entry.Manager == kubectlManager || strings.HasPrefix(entry.Manager, kubectlManager+"-")) && hasSpec(entry)
}

const kubectlManager = "kubectl"

// Managers returns a selector of the entries of managers. Writes to the subresource status are not selected. Helm is "helm" or, in
// Flux, "helm-controller". Flux applies manifests as "kustomize-controller".
func Managers(names ...string) func(metav1.ManagedFieldsEntry) bool {
	return func(entry metav1.ManagedFieldsEntry) bool {
		return slices.Contains(names, entry.Manager) && hasSpec(entry)
	}
}

// hasSpec reports whether an entry has fields outside of the status.
func hasSpec(entry metav1.ManagedFieldsEntry) bool {
	return entry.Subresource == "" || entry.Subresource == "scale"
}

// Adopt prepares objects of a different tool for Apply. The next Apply removes fields and deletes objects that left the manifests. Adopt
// deletes nothing and changes no spec. It returns an event for each object: Configured, Unchanged, Kept or Failed.
//
// Adopt changes three things:
//
//   - The parent's tooling becomes anykind, whatever it was.
//   - AdoptOptions.Members get the label of the set. Objects of the argument get it by Apply.
//   - The fields of the selected managers move to the set's field manager: in objects, in AdoptOptions.Members and in the members of the
//     parent. The annotation kubectl.kubernetes.io/last-applied-configuration is removed with its last owner.
//
// Apply leaves fields that have a further owner. Managers of several API versions can own an object. A field stays with its manager if
// its path or value differs in the version of the moved fields. Event.Reason lists such fields.
//
// An object with the label of a different set is an [*OwnedError]. AdoptOptions.Members get no label if they have an owner, or an
// annotation by which Helm or Flux keeps objects. Their event is Kept.
//
// Stop the previous tool before, or it writes its fields again. Adopt may be repeated, also after an error. It writes nothing if
// nothing is to change.
func (s *Set) Adopt(ctx context.Context, objects []*manifest.Object, opts *AdoptOptions) ([]Event, error) {
	o := valueOf(opts)
	if o.Managers == nil {
		o.Managers = KubectlManagers
	}
	a := &adoption{
		run:       &run{Set: s, options: ApplyOptions{DryRun: o.DryRun, OnEvent: o.OnEvent}},
		migration: migration{client: s.client, manager: s.FieldManager(), selects: o.Managers},
		members:   o.Members,
		read:      s.getParent,
	}
	err := a.adopt(ctx, objects)
	if err != nil {
		err = fmt.Errorf("adopt the set of %s: %w", s.parent, err)
	}
	return a.events, err
}

// Handover prepares the set for kubectl apply --server-side --prune --applyset. The fields of the set's field manager move to the
// manager kubectl, and the parent's tooling becomes kubectl/VERSION, for example with version v1.36.3. It returns an event for each
// member. After an error the parent stays with the set, and Handover may be repeated. [Set.Adopt] is the inverse.
func (s *Set) Handover(ctx context.Context, version string) ([]Event, error) {
	a := &adoption{
		run:     &run{Set: s},
		tooling: kubectlManager + "/" + version,
		read: func(ctx context.Context) (*parentState, error) {
			parent, err := s.readParent(ctx)
			if err == nil && parent.object == nil {
				err = errors.New("the parent does not exist")
			}
			return parent, err
		},
	}
	a.migration = migration{client: s.client, manager: kubectlManager, selects: Managers(s.FieldManager())}
	err := a.adopt(ctx, nil)
	if err != nil {
		err = fmt.Errorf("hand the set of %s over to kubectl: %w", s.parent, err)
	}
	return a.events, err
}

// adoption is a call of Adopt or Handover.
type adoption struct {
	*run

	migration migration
	members   []Reference
	tooling   string // of the handover, "" otherwise
	read      func(context.Context) (*parentState, error)
	changes   []*change
}

func (a *adoption) adopt(ctx context.Context, objects []*manifest.Object) error {
	var err error
	if a.desired, err = a.desire(ctx, objects); err != nil {
		return err
	}
	if ctx, err = a.begin(ctx, a.read, a.prepare); err != nil {
		return err
	}
	a.parallel(len(a.changes), func(i int) { a.add(a.changes[i].member, a.write(ctx, a.changes[i])) })
	if a.tooling != "" && len(a.errs) == 0 && ctx.Err() == nil {
		a.lock.handOver(a.tooling)
	}
	return a.end(ctx)
}

// prepare collects and plans the changes.
func (a *adoption) prepare(ctx context.Context) (added scope, hasWrites bool, err error) {
	if err := a.collect(ctx); err != nil {
		return scope{}, false, err
	}
	a.parallel(len(a.changes), func(i int) { a.plan(ctx, a.changes[i]) })
	return a.labelled(), a.hasWrites(), nil
}

// hasWrites reports whether an object or the parent must change.
func (a *adoption) hasWrites() bool {
	isOurs := a.record.object == nil || strings.HasPrefix(a.record.tooling, toolName+"/")
	return !isOurs || a.tooling != "" || slices.ContainsFunc(a.changes, func(c *change) bool { return c.patch != nil })
}

// labelled returns the scope of the new members.
func (a *adoption) labelled() scope {
	all := newScope()
	for _, c := range a.changes {
		if c.label && c.patch != nil {
			all.add(c.Reference)
		}
	}
	return all
}
