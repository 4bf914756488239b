package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/parallel"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

// ApplyOptions configure [Plan.Apply].
type ApplyOptions struct {
	// Replace permits the deletes of [Replace]. Without it, a plan with such a change is rejected before anything is written.
	Replace bool
	// Apply applies an existing object without a set. The object has its resourceVersion. The default is [dynamic.Resource.Apply]; a
	// plan with [Options.Migrates] needs a function that moves the fields.
	Apply func(ctx context.Context, resource *dynamic.Resource, obj *unstructured.Object, opts *metav1.ApplyOptions) (*unstructured.Object, error)
	// Set has the options of the set, such as its readiness rules. The default is the options of [Options.Set], or none for a loaded plan.
	// Its Namespace is ignored: the plan has it.
	Set *applyset.Options
	// OnEvent is called after every object. Calls are serialized.
	OnEvent func(applyset.Event)
}

// ChangedError reports that an object has changed since the plan. Change says how: "was created", "was changed", "was deleted", "was
// deleted and created". A member of the set that the plan does not delete "became prunable".
type ChangedError struct {
	Object applyset.Reference
	Change string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s %s since the plan (plan again)", e.Object, e.Change)
}

// Apply carries out the plan, and returns an event for each object. It first compares all read and written objects with the plan, and
// writes nothing after a difference: the error joins a [*ChangedError] for each object with a different uid or resourceVersion. A
// changed status alone is no error: controllers write it at any time. [Rejected] objects are an error, too. [NotPlanned] objects are
// applied.
//
// Without a set, the first error ends the work. A set is applied by [applyset.Set.Apply], and an object to replace is deleted with the
// lock of the set. Apply deletes no member of the set that the plan does not prune: such a member is a [*ChangedError] before the first
// write.
func (p *Plan) Apply(ctx context.Context, client *dynamic.Client, opts *ApplyOptions) ([]applyset.Event, error) {
	a := &application{plan: p}
	if opts != nil {
		a.options = *opts
	}
	a.client = client.WithDefaults(&dynamic.Defaults{FieldManager: p.FieldManager, Namespace: p.Namespace})
	if err := a.run(ctx); err != nil {
		return a.events, fmt.Errorf("apply the plan: %w", err)
	}
	return a.events, nil
}

// application is a call of Apply.
type application struct {
	plan    *Plan
	client  *dynamic.Client
	options ApplyOptions
	events  []applyset.Event
	// versions are the resourceVersions of the compared objects.
	versions map[*Change]*string
}

func (a *application) run(ctx context.Context) error {
	if err := errors.Join(a.plan.Err(), a.checkReplaces()); err != nil {
		return err
	}
	if err := a.verify(ctx); err != nil {
		return err
	}
	if a.plan.Parent != nil {
		return a.applySet(ctx)
	}
	return a.applyAll(ctx)
}

func (a *application) checkReplaces() error {
	var errs []error
	for _, change := range a.plan.Changes {
		if change.Action == Replace && !a.options.Replace {
			errs = append(errs, fmt.Errorf("%s is deleted and created (permit it with Replace)", change.Object))
		}
	}
	return errors.Join(errs...)
}

// verify compares the cluster with the plan.
func (a *application) verify(ctx context.Context) error {
	all := slices.Clone(a.plan.Reads)
	states := make([]*Change, len(all))
	for _, change := range a.plan.Changes {
		all = append(all, change.read())
		states = append(states, change)
	}
	errs := make([]error, len(all))
	versions := make([]string, len(all))
	parallel.Do(defaultWorkers, len(all), func(i int) { versions[i], errs[i] = a.compare(ctx, &all[i], states[i]) })
	a.versions = map[*Change]*string{}
	for i, change := range states {
		if change != nil {
			a.versions[change] = &versions[i]
		}
	}
	return errors.Join(errs...)
}

// read returns the state of the object in the plan.
func (c *Change) read() Read {
	read := Read{Object: c.Object, APIVersion: c.APIVersion}
	if c.Live != nil {
		read.UID = c.Live.GetUID()
		read.ResourceVersion = c.Live.GetResourceVersion()
	}
	return read
}

// compare compares an object with the plan, and returns its resourceVersion. change is nil for an object that is only read. A changed
// status is no change: controllers write it at any time.
func (a *application) compare(ctx context.Context, read *Read, change *Change) (resourceVersion string, err error) {
	found, _, err := readMetadata(ctx, a.client, read.Object, read.APIVersion)
	if isNotServed(err) && read.UID == "" {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", read.Object, err)
	}
	difference := ""
	switch {
	case found == nil && read.UID == "":
	case found == nil:
		difference = "was deleted"
	case read.UID == "":
		difference = "was created"
	case found.GetUID() != read.UID:
		difference = "was deleted and created"
	case found.GetResourceVersion() != read.ResourceVersion:
		resourceVersion, difference, err = a.compareFields(ctx, read, change)
	default:
		resourceVersion = read.ResourceVersion
	}
	if err == nil && difference != "" {
		err = &ChangedError{read.Object, difference}
	}
	return resourceVersion, err
}

// compareFields compares all fields of an object but its status. A Secret with a different resourceVersion has changed: a saved plan
// lacks its values.
func (a *application) compareFields(ctx context.Context, read *Read, change *Change) (resourceVersion, difference string, err error) {
	if change == nil || isSecret(change.Live) {
		return "", "was changed", nil
	}
	resource, err := a.client.ForObject(ctx, change.Live)
	if err != nil {
		return "", "", err
	}
	live, err := resource.Get(ctx, read.Object.Name, nil)
	if err != nil {
		return "", "", fmt.Errorf("read %s: %w", read.Object, err)
	}
	if live.GetUID() != read.UID || !sameFields(change.Live, live) {
		return "", "was changed", nil
	}
	return live.GetResourceVersion(), "", nil
}

// sameFields compares all fields but the status and those that the server assigns.
func sameFields(a, b *unstructured.Object) bool {
	before := withoutAssigned(a).Object
	after := withoutAssigned(b).Object
	delete(before, "status")
	delete(after, "status")
	return reflect.DeepEqual(before, after)
}

// applySet applies the set.
func (a *application) applySet(ctx context.Context) error {
	var objects []*manifest.Object
	changes := map[applyset.Reference]*Change{}
	for _, change := range a.plan.Changes {
		changes[change.Object] = change
		if change.Want == nil {
			continue
		}
		want := change.Want.DeepCopy()
		labels := want.GetLabels()
		delete(labels, applyset.PartOfLabel) // of Set.Prepare
		want.SetLabels(labels)
		objects = append(objects, &manifest.Object{Object: want, Source: cmp.Or(change.Position, change.Object.String())})
	}
	parent := applyset.Parent{Kind: a.plan.Parent.Kind, Namespace: a.plan.Parent.Namespace, Name: a.plan.Parent.Name}
	setOptions := a.plan.setOptions
	if a.options.Set != nil {
		setOptions = *a.options.Set
	}
	setOptions.Namespace = a.plan.Namespace
	set := applyset.New(a.client, parent, &setOptions)
	opts := &applyset.ApplyOptions{
		OnEvent: a.options.OnEvent,
		BeforeApply: func(ctx context.Context, ref applyset.Reference) (resourceVersion string, err error) {
			return a.beforeApply(ctx, changes[ref])
		},
		CheckPrune: func(ref applyset.Reference, live *unstructured.Object) error {
			return checkPrune(changes[ref], ref, live)
		},
	}
	if a.plan.ForceConflicts {
		opts.Conflicts = applyset.ConflictForce
	}
	var err error
	a.events, err = set.Apply(ctx, objects, opts)
	return err
}

// beforeApply returns the resourceVersion of an object in the state of the plan, "" for a new object. It deletes an object to replace.
func (a *application) beforeApply(ctx context.Context, change *Change) (resourceVersion string, err error) {
	switch {
	case change == nil || change.Live == nil || change.Live.GetDeletionTimestamp() != nil:
		return "", nil
	case change.Action == Replace:
		return "", a.delete(ctx, change)
	default:
		read := change.read()
		return a.compare(ctx, &read, change)
	}
}

// checkPrune returns an error for a member that the plan does not delete in this state. planned is nil for an object that is not in
// the plan.
func checkPrune(planned *Change, ref applyset.Reference, live *unstructured.Object) error {
	switch {
	case planned == nil || planned.Action != Prune || planned.Live == nil:
		return &ChangedError{ref, "became prunable"}
	case planned.Live.GetUID() != live.GetUID():
		return &ChangedError{ref, "was deleted and created"}
	case planned.Live.GetResourceVersion() == live.GetResourceVersion():
		return nil
	case isSecret(live) || !sameFields(planned.Live, live):
		return &ChangedError{ref, "was changed"}
	default:
		return nil
	}
}

// applyAll applies the objects in sequence. Kinds of the plan's definitions are awaited.
func (a *application) applyAll(ctx context.Context) error {
	var err error
	changes := make([]*Change, 0, len(a.plan.Changes))
	for _, change := range a.plan.Changes {
		if change.Want != nil {
			changes = append(changes, change)
		}
	}
	i := 0
	wants := func(yield func(*unstructured.Object, error) bool) {
		for _, change := range changes {
			if !yield(change.Want, nil) {
				return
			}
		}
	}
	for found, resolveErr := range a.client.ForObjects(ctx, wants) {
		change := changes[i]
		i++
		event := applyset.Event{Object: change.Object, Action: applyset.Unchanged, Live: change.Live}
		if err = resolveErr; err == nil && change.Action != Unchanged {
			a.awaitEffect(ctx, found.Resource, change)
			event, err = a.applyChange(ctx, found.Resource, change)
		}
		if err != nil {
			event.Action = applyset.Failed
			event.Err = &applyset.ObjectError{Object: change.Object, Position: change.Position, Err: err}
			err = event.Err
		}
		a.events = append(a.events, event)
		if a.options.OnEvent != nil {
			a.options.OnEvent(event)
		}
		if err != nil {
			return fmt.Errorf("%w (%d of %d objects were not reached)", err, len(changes)-i, len(changes))
		}
	}
	return nil
}

// effectTimeout limits the wait for the effect of a changed object on later objects.
const effectTimeout = 5 * time.Second

// awaitEffect waits until the server's dry run agrees with the plan, if the plan has changed the definition of the kind, or the limits
// of a pod: the API server uses them a moment after the write.
func (a *application) awaitEffect(ctx context.Context, resource *dynamic.Resource, change *Change) {
	if change.Planned == nil || !slices.ContainsFunc(a.plan.Changes, func(c *Change) bool { return affects(c, change) }) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, effectTimeout)
	defer cancel()
	dryRun := resource.WithDefaults(&dynamic.Defaults{DryRun: true})
	for ctx.Err() == nil {
		planned, err := dryRun.Apply(ctx, change.Want, &metav1.ApplyOptions{Force: a.plan.ForceConflicts})
		if err == nil && agree(planned, change.Planned) {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(effectInterval):
		}
	}
}

// affects reports whether a changed object has an effect on the write of a later object.
func affects(changed, later *Change) bool {
	switch {
	case changed.Want == nil || changed.Action == Unchanged:
		return false
	case later.Object.Kind == podKind:
		return changed.Object.Kind == limitRangeKind && changed.Object.Namespace == later.Object.Namespace
	}
	kind, isDefinition := dynamic.DefinedKind(changed.Want)
	return isDefinition && changed.Action == Configure && kind == later.Object.Kind
}

// agree compares two dry runs. Of a pod it compares the applied limits, because its volumes have random names.
func agree(a, b *unstructured.Object) bool {
	if a.GroupVersionKind().GroupKind() == podKind {
		const limits = "kubernetes.io/limit-ranger"
		return a.GetAnnotations()[limits] == b.GetAnnotations()[limits]
	}
	return reflect.DeepEqual(withoutAssigned(a).Object, withoutAssigned(b).Object)
}

const effectInterval = 50 * time.Millisecond

func (a *application) applyChange(ctx context.Context, resource *dynamic.Resource, change *Change) (applyset.Event, error) {
	event := applyset.Event{Object: change.Object, Action: applyset.Created}
	force := &metav1.ApplyOptions{Force: a.plan.ForceConflicts}
	if change.Action == Replace {
		if err := a.delete(ctx, change); err != nil {
			return event, err
		}
	}
	var err error
	if change.Action == Replace || change.Live == nil {
		event.Live, err = resource.Apply(ctx, change.Want, force)
		return event, err
	}
	event.Action = applyset.Configured
	event.Live, err = a.configure(ctx, resource, change, force)
	if err == nil && event.Live.GetResourceVersion() == *a.versions[change] {
		event.Action = applyset.Unchanged
	}
	return event, err
}

// configure applies an object in the state of the plan.
func (a *application) configure(ctx context.Context, resource *dynamic.Resource, change *Change, opts *metav1.ApplyOptions) (live *unstructured.Object, err error) {
	want := change.Want.DeepCopy()
	err = a.writeUnchanged(ctx, change, func(resourceVersion string) error {
		want.SetResourceVersion(resourceVersion)
		if a.options.Apply != nil {
			live, err = a.options.Apply(ctx, resource, want.DeepCopy(), opts)
		} else {
			live, err = resource.Apply(ctx, want, opts)
		}
		return err
	})
	return live, err
}

// writeUnchanged calls write with the resourceVersion of an object in the state of the plan. A change since verify is a conflict: the
// state is compared again.
func (a *application) writeUnchanged(ctx context.Context, change *Change, write func(resourceVersion string) error) error {
	for attempt := 1; ; attempt++ {
		err := write(*a.versions[change])
		var fields *dynamic.ApplyConflictError
		if !apierrors.IsConflict(err) || errors.As(err, &fields) || attempt == maxReads {
			return err
		}
		read := change.read()
		if *a.versions[change], err = a.compare(ctx, &read, change); err != nil {
			return err
		}
	}
}

// delete deletes the object of the plan and waits until it is gone.
func (a *application) delete(ctx context.Context, change *Change) error {
	resource, err := a.client.ForObject(ctx, change.Live)
	if err != nil {
		return err
	}
	uid := change.Live.GetUID()
	background := metav1.DeletePropagationBackground
	err = a.writeUnchanged(ctx, change, func(resourceVersion string) error {
		_, err := resource.Delete(ctx, change.Object.Name, &metav1.DeleteOptions{
			PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &resourceVersion},
		})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = resource.Wait(ctx, change.Object.Name, dynamic.Deleted(uid))
	return err
}
