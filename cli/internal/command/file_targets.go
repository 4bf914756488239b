package command

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/manifest"
	"github.com/anykind/anykind/dynamic"
)

// FileTargets returns the objects named in files, filtered by selection.LabelSelector. It rejects a non-empty args.
func (s *State) FileTargets(ctx context.Context, files *manifest.Reader, args []string, selection *flags.Selection) ([]Target, error) {
	if len(args) > 0 {
		return nil, errors.New("when paths, URLs, or stdin is provided as input, you may not specify resource arguments as well")
	}
	if err := files.Validate(); err != nil {
		return nil, err
	}
	selector, err := labels.Parse(selection.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("the provided selector %q is not valid: %w", selection.LabelSelector, err)
	}
	objects, err := files.Read(ctx)
	if err != nil {
		return nil, err
	}
	client, err := s.Client(ctx)
	if err != nil {
		return nil, err
	}
	namespace, isExplicit, err := s.Connection.Namespace(ctx)
	if err != nil {
		return nil, err
	}
	resolver := manifest.NewResolver(client.WithDefaults(&dynamic.Defaults{Namespace: namespace}))
	var targets []Target
	for _, obj := range objects {
		found, err := resolver.Resolve(ctx, obj)
		if err != nil {
			return nil, err
		}
		own := found.Object.GetNamespace()
		if isExplicit && own != "" && own != namespace {
			return nil, fmt.Errorf("the namespace from the provided object %q does not match the namespace %q. You must pass '--namespace=%s' to perform this operation.", own, namespace, own)
		}
		if !selector.Empty() {
			stored, err := found.Resource.Metadata().Get(ctx, obj.GetName(), nil)
			if err != nil {
				return nil, err
			}
			if !selector.Matches(labels.Set(stored.GetLabels())) {
				continue
			}
		}
		targets = append(targets, Target{Resource: found.Resource, Name: obj.GetName()})
	}
	return targets, nil
}
