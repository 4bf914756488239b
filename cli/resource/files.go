package resource

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/unstructured/manifest"
)

// ReadFiles returns the objects of files, and the errors of broken files. It rejects a non-empty args.
func ReadFiles(ctx context.Context, files *flags.Files, args []string) ([]*manifest.Object, error) {
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
