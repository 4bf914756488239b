package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/describe"
	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// describer is the command describe.
type describer struct {
	*command.State

	finder     resource.Finder
	showEvents bool
	eventsSet  bool
	described  int
}

func describeCommand(s *command.State) *cobra.Command {
	d := &describer{State: s, showEvents: true, finder: resource.Finder{Connection: s.Connection, AllowTypes: true}}
	d.finder.Files.In = s.In
	cmd := &cobra.Command{
		Use:   "describe (-f FILENAME | TYPE [NAME_PREFIX | -l label] | TYPE/NAME)",
		Short: "Show details of objects of any kind",
		Long: "Show an object's metadata, fields, conditions, owners and events.\n\n" +
			"A name that does not exist selects all objects whose names begin with it. Values of secrets are not shown.",
		Example: "  anyctl describe deploy/web\n  anyctl describe pods -l app=web\n  anyctl describe nodes",
		RunE: func(cmd *cobra.Command, args []string) error {
			d.eventsSet = cmd.Flags().Changed("show-events")
			return d.run(cmd.Context(), args)
		},
	}
	cmd.Flags().StringVarP(&d.finder.Selection.LabelSelector, "selector", "l", "", "Selector (label query) to filter on")
	cmd.Flags().BoolVarP(&d.finder.Selection.AllNamespaces, "all-namespaces", "A", false, "Describe the objects of all namespaces")
	cmd.Flags().BoolVar(&d.showEvents, "show-events", d.showEvents,
		"Show the events of the objects; by default those of a single object that is named")
	d.finder.Selection.AddChunkFlag(cmd.Flags())
	d.finder.AddWhereFlag(cmd.Flags())
	d.finder.Files.AddFlags(cmd.Flags(), "containing the objects to describe")
	return cmd
}

func (d *describer) run(ctx context.Context, args []string) error {
	if len(args) == 0 && d.finder.Files.IsEmpty() {
		return errors.New("You must specify the type of resource to describe. " +
			"Use \"anyctl api-resources\" for a complete list of supported resources.")
	}
	targets, err := d.finder.Targets(ctx, args)
	if err != nil {
		return err
	}
	if !d.eventsSet {
		d.showEvents = len(targets) == 1 && targets[0].Name != ""
	}
	found, err := d.finder.Visit(ctx, targets, d.describe)
	if apierrors.IsNotFound(err) && len(targets) == 1 && len(args) == 2 {
		return d.describePrefix(ctx, targets[0], err)
	}
	if found == 0 && err == nil {
		return reportNone(ctx, d.State, &d.finder)
	}
	return err
}

// describePrefix describes the objects with target.Name as prefix. It returns notFound without a match.
func (d *describer) describePrefix(ctx context.Context, target resource.Target, notFound error) error {
	prefix := target.Name
	target.Name = ""
	_, err := d.finder.Visit(ctx, []resource.Target{target},
		func(ctx context.Context, in *dynamic.Resource, obj *unstructured.Object) error {
			if !strings.HasPrefix(obj.GetName(), prefix) {
				return nil
			}
			return d.describe(ctx, in, obj)
		})
	if err == nil && d.described == 0 {
		return notFound
	}
	return err
}

func reportNone(ctx context.Context, s *command.State, finder *resource.Finder) error {
	text, err := finder.NoneFound(ctx, nil)
	if err == nil {
		s.Errorf("%s", text)
	}
	return err
}

// describe reads the related objects of obj and writes its description.
func (d *describer) describe(ctx context.Context, in *dynamic.Resource, obj *unstructured.Object) error {
	client, err := d.Client(ctx)
	if err != nil {
		return err
	}
	r := &reader{ctx: ctx, client: client, namespace: obj.GetNamespace(), errorf: d.Errorf}
	related := &describe.Related{Now: time.Now(), ShowEvents: d.showEvents}
	r.related(in.APIResource().GVR.GroupResource().String(), obj, related)
	if d.showEvents {
		related.Events, related.MissingEvents = r.events(obj)
	}
	if ctx.Err() != nil { // related objects may be missing
		return context.Cause(ctx)
	}
	if d.described++; d.described > 1 {
		if err := d.Printf("\n\n"); err != nil {
			return err
		}
	}
	return describe.Write(d.Out, obj, related)
}

// reader reads related objects. A description omits forbidden objects and unserved resources. Objects that cannot be read for another
// reason are named in a warning.
type reader struct {
	ctx       context.Context
	client    *dynamic.Client
	namespace string // "" for all namespaces
	errorf    func(format string, args ...any)
}

// in returns a reader of a namespace.
func (r *reader) in(namespace string) *reader {
	other := *r
	other.namespace = namespace
	return &other
}

func (r *reader) warn(resource string, err error) {
	isOmitted := err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
	if !isOmitted && r.ctx.Err() == nil {
		r.errorf("Warning: the description lacks %s: %v", resource, command.ServerMessage(err))
	}
}

// related reads the objects of a description besides events.
func (r *reader) related(resource string, obj *unstructured.Object, into *describe.Related) {
	switch resource {
	case "deployments.apps":
		into.ReplicaSets = r.owned("replicasets.apps", obj)
	case "replicasets.apps", "statefulsets.apps", "daemonsets.apps", "replicationcontrollers":
		into.Pods = r.owned("pods", obj)
	case "persistentvolumeclaims":
		into.Pods = slices.DeleteFunc(r.list("pods", nil), func(pod *unstructured.Object) bool {
			return !slices.ContainsFunc(nested.List(pod.Object, "spec", "volumes"), func(volume any) bool {
				return nested.String(volume, "persistentVolumeClaim", "claimName") == obj.GetName()
			})
		})
	case "services":
		into.EndpointSlices = r.list("endpointslices.discovery.k8s.io", &metav1.ListOptions{
			LabelSelector: "kubernetes.io/service-name=" + obj.GetName(),
		})
	case "ingresses.networking.k8s.io":
		into.EndpointSlices = r.list("endpointslices.discovery.k8s.io", nil)
		into.Services = r.list("services", nil)
	case "namespaces":
		namespaced := r.in(obj.GetName())
		into.Quotas = namespaced.list("resourcequotas", nil)
		into.LimitRanges = namespaced.list("limitranges", nil)
	case "nodes":
		into.Pods = r.list("pods", &metav1.ListOptions{FieldSelector: "spec.nodeName=" + obj.GetName()})
		into.Lease = r.in("kube-node-lease").get("leases.coordination.k8s.io", obj.GetName())
	}
}

func (r *reader) handle(resource string) (*dynamic.Resource, error) {
	handle, err := r.client.Resource(r.ctx, resource)
	if err != nil {
		return nil, err
	}
	if r.namespace == "" {
		return handle.AllNamespaces(), nil
	}
	return handle.Namespace(r.namespace), nil
}

func (r *reader) list(resource string, opts *metav1.ListOptions) []*unstructured.Object {
	all, err := r.tryList(resource, opts)
	r.warn(resource, err)
	return all
}

func (r *reader) tryList(resource string, opts *metav1.ListOptions) ([]*unstructured.Object, error) {
	handle, err := r.handle(resource)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Object
	for obj, err := range handle.List(r.ctx, opts) {
		if err != nil {
			return all, err
		}
		all = append(all, obj)
	}
	return all, nil
}

func (r *reader) get(resource, name string) *unstructured.Object {
	var obj *unstructured.Object
	handle, err := r.handle(resource)
	if err == nil {
		obj, err = handle.Get(r.ctx, name, nil)
	}
	r.warn(resource, err)
	return obj
}

// owned lists the objects controlled by owner.
func (r *reader) owned(resource string, owner *unstructured.Object) []*unstructured.Object {
	var all []*unstructured.Object
	for _, obj := range r.list(resource, nil) {
		if controller := metav1.GetControllerOf(obj); controller != nil && controller.UID == owner.GetUID() {
			all = append(all, obj)
		}
	}
	return all
}

// events lists the events about an object.
func (r *reader) events(obj *unstructured.Object) ([]*unstructured.Object, error) {
	about := fields.Set{
		"involvedObject.name": obj.GetName(), "involvedObject.namespace": obj.GetNamespace(), "involvedObject.kind": obj.GetKind(),
		"involvedObject.uid": string(obj.GetUID()),
	}
	if obj.GetNamespace() == "" { // events about nodes may have the node's name as UID
		delete(about, "involvedObject.uid")
	}
	events, err := r.tryList("events", &metav1.ListOptions{FieldSelector: about.AsSelector().String()})
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	return events, nil
}
