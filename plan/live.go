package plan

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/parallel"
	"github.com/anykind/anykind/unstructured"
)

const (
	// minListed is the number of objects of a kind and namespace that are read by a list.
	minListed = 5
	// maxListedTimes limits the list: it may have so many times the objects of the plan.
	maxListedTimes = 2
)

// collection is the objects of the plan of a kind in a namespace.
type collection struct {
	handle *dynamic.Resource
	items  []*item
}

// readLists reads the live objects of a stage by a list for each kind and namespace. The list is limited: with many objects that are
// not of the plan, and without the right to list, each object is read alone.
func (p *planner) readLists(ctx context.Context, stage []*item) {
	found := map[string]*collection{}
	var collections []*collection
	for _, it := range stage {
		if it.resource == nil || it.Action == Rejected || !it.resource.APIResource().Supports("list") {
			continue
		}
		key := it.resource.String() + "/" + it.Object.Namespace
		c := found[key]
		if c == nil {
			c = &collection{handle: it.resource}
			found[key] = c
			collections = append(collections, c)
		}
		c.items = append(c.items, it)
	}
	parallel.Do(p.options.Workers, len(collections), func(i int) {
		if c := collections[i]; len(c.items) >= minListed {
			c.read(ctx)
		}
	})
}

func (c *collection) read(ctx context.Context) {
	page, err := c.handle.ListPage(ctx, &metav1.ListOptions{Limit: int64(maxListedTimes * len(c.items))})
	if err != nil || page.Continue != "" {
		return // each object is read alone, with its error
	}
	byName := map[string]*unstructured.Object{}
	for _, obj := range page.Items {
		byName[obj.GetName()] = obj
	}
	for _, it := range c.items {
		it.Live = byName[it.Object.Name]
		it.isRead = true
	}
}

// maxReads limits the reads of an object that changes all the time.
const maxReads = 4

// readAndApply reads the live object and applies the object in a dry run, both in the same state. The error is that of reading.
func (p *planner) readAndApply(ctx context.Context, it *item) (found response, err error) {
	dryRun := it.resource.WithDefaults(&dynamic.Defaults{DryRun: true})
	for range maxReads {
		if !it.isRead {
			it.Live, err = it.resource.Get(ctx, it.Object.Name, nil)
			if apierrors.IsNotFound(err) {
				it.Live = nil
				err = nil
			}
			if err != nil {
				return response{}, err
			}
		}
		found = p.migrate(ctx, dryRun, it, p.apply(ctx, dryRun, it.Want))
		if found.planned == nil || version(it.Live) == found.planned.GetResourceVersion() {
			break
		}
		it.isRead = false
	}
	return found, nil
}

// version returns the resourceVersion, and "" for a missing object.
func version(obj *unstructured.Object) string {
	if obj == nil {
		return ""
	}
	return obj.GetResourceVersion()
}
