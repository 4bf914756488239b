package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/builtingroup"
	"github.com/anykind/anykind/internal/parallel"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/unstructured"
)

// read adds the objects that the plan depends on.
func (p *planner) read(ctx context.Context) error {
	isPlanned := map[applyset.Reference]bool{}
	for _, change := range p.plan.Changes {
		isPlanned[change.Object] = true
	}
	isRead := map[applyset.Reference]bool{}
	for _, it := range p.items {
		if it.Object.Namespace != "" {
			isRead[applyset.Reference{Kind: namespaceKind, Name: it.Object.Namespace}] = true
		}
		if it.resource != nil && !builtingroup.Is(it.Object.Kind.Group) {
			isRead[applyset.Reference{Kind: definitionKind, Name: it.resource.APIResource().GVR.GroupResource().String()}] = true
		}
	}
	if p.plan.Parent != nil {
		isRead[*p.plan.Parent] = true
	}
	maps.DeleteFunc(isRead, func(ref applyset.Reference, _ bool) bool { return isPlanned[ref] })
	refs := slices.Collect(maps.Keys(isRead))
	applyset.SortReferences(refs)
	reads := make([]*Read, len(refs))
	errs := make([]error, len(refs))
	parallel.Do(p.options.Workers, len(refs), func(i int) {
		found, apiVersion, err := readMetadata(ctx, p.client, refs[i], "")
		if errs[i] = err; err != nil {
			return
		}
		reads[i] = &Read{Object: refs[i], APIVersion: apiVersion}
		if found != nil {
			reads[i].UID = found.GetUID()
			reads[i].ResourceVersion = found.GetResourceVersion()
		}
	})
	for i, ref := range refs {
		switch err := errs[i]; {
		case err == nil:
			p.plan.Reads = append(p.plan.Reads, *reads[i])
		case apierrors.IsForbidden(err):
			p.plan.NotValidated = append(p.plan.NotValidated, fmt.Sprintf("changes of %s after the plan: %s", ref, message(err)))
		default:
			return fmt.Errorf("read %s: %w", ref, err)
		}
	}
	return nil
}

// readMetadata returns the metadata of an object, nil if it does not exist, and the version of its kind. apiVersion may be empty.
func readMetadata(ctx context.Context, client *dynamic.Client, ref applyset.Reference, apiVersion string) (*unstructured.Object, string, error) {
	version, _ := schema.ParseGroupVersion(apiVersion) // empty for an empty text
	resource, err := client.ForKind(ctx, ref.Kind.WithVersion(version.Version))
	if err != nil {
		return nil, apiVersion, err
	}
	apiVersion = resource.APIResource().GVK.GroupVersion().String()
	if ref.Namespace != "" {
		resource = resource.Namespace(ref.Namespace)
	}
	found, err := resource.Metadata().Get(ctx, ref.Name, nil)
	if apierrors.IsNotFound(err) {
		return nil, apiVersion, nil
	}
	return found, apiVersion, err
}

// isNotServed reports whether the server has no such kind.
func isNotServed(err error) bool {
	var noMatch *restmapper.NoMatchError
	return errors.As(err, &noMatch)
}
