package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/parallel"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

// planner is a call of Objects.
type planner struct {
	client  *dynamic.Client
	options Options
	plan    *Plan
	items   []*item // in the order of the work
	stages  [][]*item
}

// item is an object to apply.
type item struct {
	*Change

	resource     *dynamic.Resource // nil until the kind is served
	dependencies []*item
	// unplannable is the reason why the server cannot plan the object, and doubt the reason why its response may differ from the outcome.
	// Both are empty if the server's response is the plan.
	unplannable, doubt string
	isRead             bool // Live is known from a list
	isAggregated       bool // of an APIService in the plan: no copy serves it
}

const defaultWorkers = 10

// Objects plans the apply of objects by server-side apply. It writes nothing. The errors of single objects are part of the plan.
// Objects returns an error for duplicates and objects without a name (see [manifest.Validate]), for a set or object that cannot be
// read, and for the end of ctx.
func Objects(ctx context.Context, client *dynamic.Client, objects []*manifest.Object, opts *Options) (*Plan, error) {
	p := &planner{}
	if opts != nil {
		p.options = *opts
	}
	p.prepareOptions(client)
	if err := p.run(ctx, objects); err != nil {
		return nil, fmt.Errorf("plan %d objects: %w", len(objects), err)
	}
	return p.plan, nil
}

func (p *planner) prepareOptions(client *dynamic.Client) {
	conn := client.ForAPIResource(nil).Conn()
	if p.options.Workers <= 0 {
		p.options.Workers = defaultWorkers
	}
	if set := p.options.Set; set != nil {
		p.options.Namespace = set.Options().Namespace
		p.options.FieldManager = set.FieldManager()
	}
	defaults := client.Defaults()
	p.options.Namespace = cmp.Or(p.options.Namespace, defaults.Namespace, conn.Namespace())
	p.options.FieldManager = cmp.Or(p.options.FieldManager, defaults.FieldManager)
	p.client = client.WithDefaults(&dynamic.Defaults{FieldManager: p.options.FieldManager, Namespace: p.options.Namespace})
	p.plan = &Plan{
		Server: conn.Server(), FieldManager: p.options.FieldManager, ForceConflicts: p.options.ForceConflicts, Namespace: p.options.Namespace,
	}
	if set := p.options.Set; set != nil {
		parent := set.Parent().Reference()
		p.plan.Parent = &parent
		p.plan.setOptions = set.Options()
	}
}

func (p *planner) run(ctx context.Context, objects []*manifest.Object) error {
	prepared := objects
	if set := p.options.Set; set != nil {
		var err error
		if prepared, err = set.Prepare(ctx, objects); err != nil {
			return err
		}
	} else if err := manifest.Validate(objects, p.options.Namespace); err != nil {
		return err
	}
	if err := p.resolveAll(ctx, prepared); err != nil {
		return err
	}
	for _, stage := range p.stages {
		p.readLists(ctx, stage)
		parallel.Do(p.options.Workers, len(stage), func(i int) { p.planByServer(ctx, stage[i]) })
	}
	p.planByCopy(ctx)
	for _, it := range p.items {
		p.plan.Changes = append(p.plan.Changes, it.Change)
	}
	if err := p.planPrunes(ctx, objects); err != nil {
		return err
	}
	p.cascade(ctx)
	p.noteQuotas(ctx)
	if err := p.read(ctx); err != nil {
		return err
	}
	return retry.ContextError(ctx)
}

// resolveAll finds the resources and the order of objects.
func (p *planner) resolveAll(ctx context.Context, objects []*manifest.Object) error {
	d := kindDefinitions{map[schema.GroupKind]*unstructured.Object{}, map[schema.GroupVersion]*unstructured.Object{}}
	for _, obj := range objects {
		d.add(obj.Object)
	}
	wants := make([]*unstructured.Object, 0, len(objects))
	byObject := map[*unstructured.Object]*item{}
	for _, obj := range objects {
		it := p.resolve(ctx, obj, d)
		wants = append(wants, it.Want)
		byObject[it.Want] = it
	}
	order, err := dynamic.InstallOrder(wants, p.options.Namespace)
	if err != nil {
		return err
	}
	for _, stage := range order.Stages {
		var items []*item
		for _, want := range stage {
			it := byObject[want]
			for _, dependency := range order.Dependencies[want] {
				it.dependencies = append(it.dependencies, byObject[dependency])
			}
			items = append(items, it)
		}
		p.stages = append(p.stages, items)
		p.items = append(p.items, items...)
	}
	return nil
}

// kindDefinitions are the objects of the plan that define kinds.
type kindDefinitions struct {
	definitions map[schema.GroupKind]*unstructured.Object
	apiServices map[schema.GroupVersion]*unstructured.Object
}

func (d kindDefinitions) add(obj *unstructured.Object) {
	if kind, isDefinition := dynamic.DefinedKind(obj); isDefinition {
		d.definitions[kind] = obj
	} else if obj.GroupVersionKind().GroupKind() == apiServiceKind {
		group, _, _ := unstructured.Get[string](obj, "spec", "group") // the API server reports a wrong type
		version, _, _ := unstructured.Get[string](obj, "spec", "version")
		d.apiServices[schema.GroupVersion{Group: group, Version: version}] = obj
	}
}

// resolve returns the item of an object. An error of the kind is the error of the change.
func (p *planner) resolve(ctx context.Context, obj *manifest.Object, d kindDefinitions) *item {
	kind := obj.GroupVersionKind()
	want := obj.DeepCopy()
	want.SetManagedFields(nil)
	it := &item{Change: &Change{APIVersion: obj.GetAPIVersion(), Position: obj.Position(), Want: want}}
	resource, err := p.client.ForKind(ctx, kind)
	isNamespaced := want.GetNamespace() != ""
	var noMatch *restmapper.NoMatchError
	definition := d.definitions[kind.GroupKind()]
	apiService := d.apiServices[kind.GroupVersion()]
	switch {
	case err == nil:
		isNamespaced = resource.APIResource().Namespaced
	case errors.As(err, &noMatch) && definition != nil:
		scope, _, _ := unstructured.Get[string](definition, "spec", "scope") // the API server reports a wrong type
		isNamespaced = scope == "Namespaced"
		it.unplannable = fmt.Sprintf("its kind is defined by CustomResourceDefinition %q of this plan", definition.GetName())
		it.Err = err
	case errors.As(err, &noMatch) && apiService != nil: // the kind is namespaced if the object has a namespace
		it.unplannable = fmt.Sprintf("an aggregated API server serves it, registered by APIService %q of this plan", apiService.GetName())
		it.isAggregated = true
		it.Err = err
	default:
		it.reject(err)
	}
	if isNamespaced {
		want.SetNamespace(cmp.Or(want.GetNamespace(), p.options.Namespace))
	} else {
		want.SetNamespace("")
	}
	it.Object = applyset.ReferenceTo(want)
	if resource != nil && isNamespaced {
		resource = resource.Namespace(want.GetNamespace())
	}
	it.resource = resource
	return it
}

// reject sets the error of a write.
func (c *Change) reject(err error) {
	c.Action = Rejected
	c.Err = c.withoutValues(err)
	c.Reason = message(c.Err)
}

// message returns the text of an error, without the request of a server's error. The server's text about unknown fields may contain
// the object, Secrets included.
func message(err error) string {
	var status *apierrors.StatusError
	var fields *dynamic.FieldValidationError
	if errors.As(err, &status) && !errors.As(err, &fields) {
		return status.ErrStatus.Message
	}
	return err.Error()
}

var (
	namespaceKind  = schema.GroupKind{Kind: "Namespace"}
	definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	podKind        = schema.GroupKind{Kind: "Pod"}
	limitRangeKind = schema.GroupKind{Kind: "LimitRange"}
	apiServiceKind = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
)
