package command

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/anykind/anykind/cli/manifest"
	"github.com/anykind/anykind/dynamic"
)

// ReadFiles returns the objects of files, and the errors of broken files. It rejects a non-empty args.
func ReadFiles(ctx context.Context, files *manifest.Reader, args []string) ([]*manifest.Object, error) {
	if len(args) > 0 {
		return nil, errors.New("when paths, URLs, or stdin is provided as input, you may not specify resource arguments as well")
	}
	return files.Read(ctx)
}

// SelectFiles returns the objects with labels matching a selector.
func SelectFiles(objects []*manifest.Object, labelSelector string) ([]*manifest.Object, error) {
	selector, err := parseSelector(labelSelector)
	if err != nil || selector.Empty() {
		return objects, err
	}
	var selected []*manifest.Object
	for _, obj := range objects {
		if selector.Matches(labels.Set(obj.GetLabels())) {
			selected = append(selected, obj)
		}
	}
	return selected, nil
}

func parseSelector(text string) (labels.Selector, error) {
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the provided selector %q is not valid: %w", text, err)
	}
	return selector, nil
}

// FileResolver finds the resources of objects in files.
type FileResolver struct {
	resolver *manifest.Resolver
	// namespace is the value of --namespace, or "".
	namespace string
}

// NewFileResolver returns a FileResolver with the client of the connection flags.
func (s *State) NewFileResolver(ctx context.Context) (*FileResolver, error) {
	client, err := s.Client(ctx)
	if err != nil {
		return nil, err
	}
	return &FileResolver{resolver: manifest.NewResolver(client), namespace: s.Connection.NamespaceFlag}, nil
}

// Resolve returns the handle on the resource of an object, in the object's namespace. It rejects an object in a namespace other
// than --namespace.
func (r *FileResolver) Resolve(ctx context.Context, obj *manifest.Object) (*dynamic.ManifestObject, error) {
	found, err := r.resolver.Resolve(ctx, obj)
	if err != nil {
		return nil, err
	}
	if own := found.Object.GetNamespace(); r.namespace != "" && own != "" && own != r.namespace {
		return nil, fmt.Errorf("the namespace from the provided object %q does not match the namespace %q. You must pass '--namespace=%s' to perform this operation.", own, r.namespace, own)
	}
	return found, nil
}
