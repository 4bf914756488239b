package inventory

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/parallel"
	"github.com/anykind/anykind/internal/retry"
)

// defaultWorkers is the default of ListOptions.Workers.
const defaultWorkers = 10

// ListOptions select the objects of [List]. nil and zero values select all objects.
type ListOptions struct {
	// Resources selects resources by group, category, scope and verbs, in addition to the verb list.
	Resources *discovery.ResourceFilter
	// Select reports whether to list a resource. nil selects all resources.
	Select func(*discovery.Resource) bool
	// Namespaces are the namespaces to list. Cluster-scoped objects are left out. nil means all namespaces and cluster-scoped
	// objects.
	Namespaces []string
	// LabelSelector selects objects by their labels, in the form of metav1.ListOptions.
	LabelSelector string
	// Metadata requests only the metadata of objects: see dynamic.Handle.Metadata.
	Metadata bool
	// IncludeVirtual also lists componentstatuses, endpoints beside endpointslices, and objects without a UID, such as
	// pods.metrics.k8s.io. A server computes these on request.
	IncludeVirtual bool
	// Workers is the maximum number of concurrent lists. 0 means 10.
	Workers int
}

// Item is an object with a handle on its resource, in its namespace. The handle reads whole objects, also with
// ListOptions.Metadata.
type Item[T any] struct {
	Resource *dynamic.Handle[T]
	Object   *T
}

// object is a pointer to a type of objects.
type object[T any] interface {
	*T
	GetUID() types.UID
	GetNamespace() string
}

// List yields every selected object once, each resource in the server's preferred version. T is a type of objects of a
// [dynamic.Handle].
//
// Resources are listed concurrently, page by page. A page of each of ListOptions.Workers resources is in memory. The objects of a
// resource are in the order of the server, between objects of further resources. Objects of two resources with the same kind and
// UID, such as the Events of v1 and events.k8s.io/v1, are yielded once, with the resource that is first in the server's order.
//
// If a user may not list a resource in all namespaces, List lists each namespace. A SelfSubjectRulesReview for each
// namespace says where the user may list which resource; if it is incomplete, List tries. With ListOptions.Namespaces it is sent
// after the first list that was denied.
//
// The last element is an error if the result is incomplete: an [*IncompleteError] with the resources that could not be listed, or
// the error of discovery or of ctx. Resources that are no longer served are left out. Leaving the loop early ends all requests.
// Warnings of the server are discarded, because most name versions of resources that the caller did not choose.
func List[T any, P object[T]](ctx context.Context, client *dynamic.Client, opts *ListOptions) iter.Seq2[Item[T], error] {
	return func(yield func(Item[T], error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		l := newLister[T, P](ctx, client, opts)
		groups, err := l.resources()
		if err != nil {
			yield(Item[T]{}, fmt.Errorf("list all resources: %w", err))
			return
		}
		go func() {
			defer close(l.items)
			parallel.Do(l.opts.Workers, len(groups), func(i int) { l.listGroup(groups[i]) })
		}()
		// The goroutines end before List returns.
		defer func() {
			cancel()
			for range l.items { // discards what was sent meanwhile
			}
		}()
		for item := range l.items {
			if !yield(item, nil) {
				return
			}
		}
		if err := l.err(); err != nil {
			yield(Item[T]{}, err)
		}
	}
}

// lister is a call of List.
type lister[T any, P object[T]] struct {
	ctx    context.Context //nolint:containedctx // of a single call
	client *dynamic.Client
	opts   ListOptions
	access *access
	items  chan Item[T]

	mu         sync.Mutex
	incomplete IncompleteError
}

func newLister[T any, P object[T]](ctx context.Context, client *dynamic.Client, opts *ListOptions) *lister[T, P] {
	silent := client.WithDefaults(&dynamic.Defaults{OnWarning: func(context.Context, string) {}})
	l := &lister[T, P]{ctx: ctx, client: silent, opts: *cmp.Or(opts, &ListOptions{}), items: make(chan Item[T])}
	l.opts.Workers = cmp.Or(l.opts.Workers, defaultWorkers)
	l.opts.Namespaces = slices.Clone(l.opts.Namespaces) // nil means all
	slices.Sort(l.opts.Namespaces)
	l.opts.Namespaces = slices.Compact(l.opts.Namespaces)
	l.access = newAccess(silent, l.opts.Namespaces)
	return l
}

// resources returns the selected resources, grouped by kind, and records unavailable group versions.
func (l *lister[T, P]) resources() ([][]*discovery.Resource, error) {
	snapshot, err := l.client.Discovery().Snapshot(l.ctx)
	if err != nil {
		return nil, err
	}
	l.incomplete.Resources = unavailableVersions(snapshot, l.opts.Resources)
	return groupByKind(selectResources(snapshot, &l.opts)), nil
}

// listGroup lists resources of the same kind name in sequence. These may have the same objects.
func (l *lister[T, P]) listGroup(resources []*discovery.Resource) {
	var seen map[types.UID]bool
	if len(resources) > 1 {
		seen = map[types.UID]bool{}
	}
	for _, resource := range resources {
		l.listResource(resource, seen)
	}
}

func (l *lister[T, P]) listResource(resource *discovery.Resource, seen map[types.UID]bool) {
	handle := dynamic.As[T](l.client.ForAPIResource(resource))
	if l.opts.Namespaces == nil {
		err := l.list(handle.AllNamespaces(), seen)
		if !resource.Namespaced || !apierrors.IsForbidden(err) {
			l.failUnlessGone(resource, err, nil)
			return
		}
	}
	l.listNamespaces(resource, handle, seen)
}

// listNamespaces lists each namespace. Rules are read for the first namespace that is denied.
func (l *lister[T, P]) listNamespaces(resource *discovery.Resource, handle *dynamic.Handle[T], seen map[types.UID]bool) {
	namespaces, err := l.access.readNamespaces(l.ctx)
	var listed []string
	denied := 0
	isLimited := l.opts.Namespaces == nil // otherwise a list in all namespaces was not tried
	for _, namespace := range namespaces {
		if l.access.isDenied(l.ctx, namespace, resource, isLimited) {
			denied++
			continue
		}
		switch listErr := l.list(handle.Namespace(namespace), seen); {
		case listErr == nil:
			listed = append(listed, namespace)
		case apierrors.IsForbidden(listErr):
			denied++
			l.access.isDenied(l.ctx, namespace, resource, true)
		case err == nil:
			err = listErr
		}
	}
	if denied > 0 && err == nil {
		reason := fmt.Errorf("the user may not list it in %d of %d namespaces", denied, len(namespaces))
		err = apierrors.NewForbidden(resource.GVR.GroupResource(), "", reason)
	}
	l.failUnlessGone(resource, err, listed)
}

// list sends the objects of a collection.
func (l *lister[T, P]) list(collection *dynamic.Handle[T], seen map[types.UID]bool) error {
	form := collection
	if l.opts.Metadata {
		form = collection.Metadata()
	}
	for obj, err := range form.List(l.ctx, &metav1.ListOptions{LabelSelector: l.opts.LabelSelector}) {
		if err != nil {
			return err
		}
		uid := P(obj).GetUID()
		if uid == "" && !l.opts.IncludeVirtual || seen[uid] {
			continue
		}
		if seen != nil && uid != "" {
			seen[uid] = true
		}
		item := Item[T]{Resource: collection, Object: obj}
		if namespace := P(obj).GetNamespace(); namespace != "" {
			item.Resource = collection.Namespace(namespace)
		}
		select {
		case l.items <- item:
		case <-l.ctx.Done():
			return retry.ContextError(l.ctx)
		}
	}
	return nil
}

// failUnlessGone notes the error of a resource. Discovery may be older than the deletion of a resource.
func (l *lister[T, P]) failUnlessGone(resource *discovery.Resource, err error, listed []string) {
	if err != nil && !apierrors.IsNotFound(err) {
		l.fail(&ResourceError{Group: resource.GVR.Group, Version: resource.GVR.Version, Resource: resource.GVR.Resource, Namespaces: listed, Err: err})
	}
}

func (l *lister[T, P]) fail(err *ResourceError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.incomplete.Resources = append(l.incomplete.Resources, err)
}

// err returns the error of the whole list, or nil.
func (l *lister[T, P]) err() error {
	switch {
	case l.ctx.Err() != nil:
		return fmt.Errorf("list all resources: %w", retry.ContextError(l.ctx))
	case len(l.incomplete.Resources) > 0:
		l.incomplete.sort()
		return &l.incomplete
	}
	return nil
}
