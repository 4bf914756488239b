package clustercopy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// maxParallel is the number of lists at a time.
const maxParallel = 8

// From copies the selected objects of a cluster. nil opts mean defaults. It sends lists in pages, several at a time, and changes
// nothing.
//
// All lists are made at a single revision of the cluster if the server still has it. Aggregated API servers, Events and
// resources of a different etcd are listed at their own revisions.
//
// Forbidden resources and unavailable groups are in [Copy.Omitted]. Other failures are an error: an ended ctx, a broken connection, a
// rejected credential, an unknown name in opts.Resources.
func From(ctx context.Context, client *dynamic.Client, opts *Options) (*Copy, error) {
	c := &copier{client: client, copy: &Copy{TakenAt: time.Now()}, storage: map[schema.GroupResource]string{}, aggregated: map[schema.GroupVersion]bool{}}
	if opts != nil {
		c.opts = *opts
	}
	if _, err := labels.Parse(c.opts.LabelSelector); err != nil {
		return nil, fmt.Errorf("copy the cluster: Options.LabelSelector: %w", err)
	}
	if err := c.run(ctx); err != nil {
		return nil, fmt.Errorf("copy the cluster: %w", err)
	}
	return c.copy, nil
}

// copier is a call of From.
type copier struct {
	client     *dynamic.Client
	opts       Options
	copy       *Copy
	storage    map[schema.GroupResource]string // storage versions of custom resources
	aggregated map[schema.GroupVersion]bool    // served by aggregated API servers

	mu       sync.Mutex
	progress Progress
}

func (c *copier) run(ctx context.Context) error {
	version, err := c.client.Discovery().ServerVersion(ctx)
	if err != nil {
		return err
	}
	c.copy.Version = *version
	snapshot, err := c.client.Discovery().Refresh(ctx)
	if err != nil {
		return err
	}
	c.omitUnavailable(snapshot)
	selected, err := c.selectResources(ctx, snapshot)
	if err != nil {
		return err
	}
	first, rest := split(selected)
	for _, resource := range first {
		if err := c.copyAll(ctx, resource); err != nil {
			return err
		}
	}
	for i, resource := range rest {
		rest[i] = c.stored(snapshot, resource)
	}
	for c.copy.ResourceVersion == "" && len(rest) > 0 { // the first list has the revision of all further lists
		if err := c.copyAll(ctx, rest[0]); err != nil {
			return err
		}
		rest = rest[1:]
	}
	return c.copyAll(ctx, rest...)
}

// omitUnavailable notes the group versions whose resources discovery could not read.
func (c *copier) omitUnavailable(snapshot *discovery.Snapshot) {
	for gv, version := range snapshot.Versions() {
		if !version.Healthy() {
			reason := "the group version is unavailable"
			if version.Err != nil {
				reason += ": " + version.Err.Error()
			}
			c.omit(Omission{Group: gv.Group, Version: gv.Version, Reason: reason})
		}
	}
	for _, err := range snapshot.Rejected {
		c.omit(Omission{Reason: "discovery rejected a group: " + err.Error()})
	}
}

func (c *copier) omit(o Omission) { c.copy.Omitted = append(c.copy.Omitted, o) }

// selectResources returns the selected resources.
func (c *copier) selectResources(ctx context.Context, snapshot *discovery.Snapshot) (selected []*discovery.Resource, err error) {
	var all []*discovery.Resource
	for resource := range snapshot.PreferredResources(&discovery.ResourceFilter{Verbs: []string{"list"}}) {
		all = append(all, resource)
	}
	named := map[schema.GroupResource]*discovery.Resource{}
	if len(c.opts.Resources) > 0 {
		found, err := c.client.Mapper().Resources(ctx, strings.Join(c.opts.Resources, ","))
		if err != nil {
			return nil, err
		}
		for _, resource := range found {
			if !resource.Supports("list") {
				return nil, fmt.Errorf("%s cannot be listed", resource.GVR.GroupResource())
			}
			named[resource.GVR.GroupResource()] = resource
		}
	}
	for _, resource := range all {
		id := resource.GVR.GroupResource()
		switch {
		case named[id] != nil:
			selected = append(selected, named[id])
		case always[id]:
			selected = append(selected, resource)
		case c.opts.Resources != nil:
		case byNameOnly[id] != "":
			c.omit(Omission{Group: id.Group, Resource: id.Resource, Reason: byNameOnly[id], ByDefault: true})
		default:
			selected = append(selected, resource)
		}
	}
	return selected, nil
}

// split divides resources. The lists of rest depend on the objects of first.
func split(resources []*discovery.Resource) (first, rest []*discovery.Resource) {
	for _, resource := range resources {
		switch resource.GVR.GroupResource() {
		case schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
			schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}:
			first = append(first, resource)
		default:
			rest = append(rest, resource)
		}
	}
	return first, rest
}

// stored returns a custom resource in its storage version, if served: its objects need no conversion.
func (c *copier) stored(snapshot *discovery.Snapshot, resource *discovery.Resource) *discovery.Resource {
	version := c.storage[resource.GVR.GroupResource()]
	if version == "" || version == resource.GVR.Version {
		return resource
	}
	want := resource.GVR.GroupResource().WithVersion(version)
	for other := range snapshot.Resources() {
		if other.GVR == want && other.Supports("list") {
			return other
		}
	}
	return resource
}

// copyAll lists resources in parallel and adds their objects in the order of resources.
func (c *copier) copyAll(ctx context.Context, resources ...*discovery.Resource) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]result, len(resources))
	slots := make(chan struct{}, maxParallel)
	var group sync.WaitGroup
	c.progress.AllLists += len(resources)
	for i, resource := range resources {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if results[i].err = c.list(ctx, resource, &results[i]); results[i].err != nil {
				cancel(errStopped)
			}
		})
	}
	group.Wait()
	if err := firstError(results); err != nil {
		return err
	}
	for i, resource := range resources {
		if err := c.add(resource, &results[i]); err != nil {
			return err
		}
	}
	return nil
}

// errStopped ends the lists of a From that has failed.
var errStopped = errors.New("another list has failed")

func firstError(results []result) error {
	var stopped error
	for _, r := range results {
		if r.err != nil && !errors.Is(r.err, errStopped) {
			return r.err
		}
		if r.err != nil {
			stopped = r.err
		}
	}
	return stopped
}

// add adds the result of a list to the copy.
func (c *copier) add(resource *discovery.Resource, r *result) error {
	c.copy.Omitted = append(c.copy.Omitted, r.omitted...)
	if !r.isListed {
		return nil
	}
	copied := Resource{
		Group: resource.GVR.Group, Version: resource.GVR.Version, Plural: resource.GVR.Resource, Singular: resource.Singular, Kind: resource.GVK.Kind,
		ShortNames: resource.ShortNames, Categories: resource.Categories, Namespaced: resource.Namespaced,
		IsAggregated: c.aggregated[resource.GVR.GroupVersion()], ResourceVersion: r.resourceVersion,
	}
	for _, sub := range resource.Subresources {
		copied.Subresources = append(copied.Subresources, sub.Name)
	}
	if c.copy.ResourceVersion == "" && !copied.IsAggregated {
		c.copy.ResourceVersion = r.resourceVersion
	}
	c.copy.Resources = append(c.copy.Resources, copied)
	c.copy.Objects = append(c.copy.Objects, r.objects...)
	switch resource.GVR.GroupResource() {
	case schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}:
		return c.readDefinitions(r.objects)
	case schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}:
		return c.readServices(r.objects)
	case schema.GroupResource{Resource: "namespaces"}:
		if len(r.omitted) == 0 {
			c.omitMissing(r.objects)
		}
	}
	return nil
}

// omitMissing notes selected namespaces that do not exist.
func (c *copier) omitMissing(namespaces []*unstructured.Lazy) {
	for _, name := range c.opts.Namespaces {
		if !slices.ContainsFunc(namespaces, func(n *unstructured.Lazy) bool { return n.GetName() == name }) {
			c.omit(Omission{Version: "v1", Resource: "namespaces", Namespace: name, Reason: "there is no such namespace"})
		}
	}
}

// readDefinitions notes the storage versions of custom resources.
func (c *copier) readDefinitions(definitions []*unstructured.Lazy) error {
	for _, definition := range definitions {
		fields, err := unstructured.As[definitionFields](definition)
		if err != nil {
			return fmt.Errorf("read %s: %w", definition, err)
		}
		for _, version := range fields.Spec.Versions {
			if version.Storage {
				c.storage[schema.GroupResource{Group: fields.Spec.Group, Resource: fields.Spec.Names.Plural}] = version.Name
			}
		}
	}
	return nil
}

// definitionFields has the storage version of a CustomResourceDefinition.
type definitionFields struct {
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Plural string `json:"plural"`
		} `json:"names"`
		Versions []struct {
			Name    string `json:"name"`
			Storage bool   `json:"storage"`
		} `json:"versions"`
	} `json:"spec"`
}

// serviceFields has the group version of an APIService, and a Service if it is aggregated.
type serviceFields struct {
	Spec struct {
		Group   string    `json:"group"`
		Version string    `json:"version"`
		Service *struct{} `json:"service"`
	} `json:"spec"`
}

// readServices notes the group versions of aggregated API servers.
func (c *copier) readServices(services []*unstructured.Lazy) error {
	for _, service := range services {
		fields, err := unstructured.As[serviceFields](service)
		if err != nil {
			return fmt.Errorf("read %s: %w", service, err)
		}
		if fields.Spec.Service != nil {
			c.aggregated[schema.GroupVersion{Group: fields.Spec.Group, Version: fields.Spec.Version}] = true
		}
	}
	return nil
}
