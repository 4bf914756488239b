package flags

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/restmapper"
)

// Selection has the values of the selection flags.
type Selection struct {
	LabelSelector, FieldSelector string
	AllNamespaces                bool
	// ChunkSize is the number of objects in a page. 0 disables paging.
	ChunkSize int64
}

// AddFlags defines --selector, --field-selector and --all-namespaces in fs.
func (s *Selection) AddFlags(fs *pflag.FlagSet) {
	fs.StringVarP(&s.LabelSelector, "selector", "l", s.LabelSelector, "Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'.(e.g. -l key1=value1,key2=value2,key3 in (value3)). Matching objects must satisfy all of the specified label constraints.")
	fs.StringVar(&s.FieldSelector, "field-selector", s.FieldSelector, "Selector (field query) to filter on, supports '=', '==', and '!='.(e.g. --field-selector key1=value1,key2=value2). The server only supports a limited number of field queries per type.")
	fs.BoolVarP(&s.AllNamespaces, "all-namespaces", "A", s.AllNamespaces, "If present, list the requested object(s) across all namespaces. Namespace in current context is ignored even if specified with --namespace.")
}

// AddChunkFlag defines --chunk-size in fs.
func (s *Selection) AddChunkFlag(fs *pflag.FlagSet) {
	s.ChunkSize = 500
	fs.Int64Var(&s.ChunkSize, "chunk-size", s.ChunkSize, "Return large lists in chunks rather than all at once. Pass 0 to disable. This flag is beta and may change in the future.")
}

// ListOptions returns the options for listing the selected objects.
func (s *Selection) ListOptions() *metav1.ListOptions {
	return &metav1.ListOptions{LabelSelector: s.LabelSelector, FieldSelector: s.FieldSelector, Limit: s.ChunkSize}
}

// Resource returns a handle on the resource with a name. An ambiguous name means its first resource, as in kubectl.
func Resource(ctx context.Context, client *dynamic.Client, name string) (*dynamic.Resource, error) {
	r, err := client.Resource(ctx, name)
	var ambiguous *restmapper.AmbiguousError
	if !errors.As(err, &ambiguous) {
		return r, err
	}
	first := ambiguous.Candidates[0]
	return client.Resource(ctx, first.Resource+"."+first.Version+"."+first.Group)
}

func resources(ctx context.Context, client *dynamic.Client, list string) ([]*dynamic.Resource, error) {
	var handles []*dynamic.Resource
	seen := map[string]bool{}
	add := func(handle *dynamic.Resource) {
		if key := handle.Mapping().GVR.String(); !seen[key] {
			seen[key] = true
			handles = append(handles, handle)
		}
	}
	for name := range strings.SplitSeq(list, ",") {
		if name == "" {
			continue
		}
		mappings, err := client.Mapper().Resources(ctx, name)
		var ambiguous *restmapper.AmbiguousError
		if errors.As(err, &ambiguous) {
			handle, err := Resource(ctx, client, name)
			if err != nil {
				return nil, err
			}
			add(handle)
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, mapping := range mappings {
			add(client.ForMapping(mapping))
		}
	}
	return handles, nil
}
