package change

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/unstructured"
)

func setImageCommand(s *command.State) *cobra.Command {
	o := &setOptions{failure: "failed to patch image update to pod template: "}
	cmd := &cobra.Command{
		Use:     "image (-f FILENAME | TYPE NAME) CONTAINER_NAME_1=CONTAINER_IMAGE_1 ... CONTAINER_NAME_N=CONTAINER_IMAGE_N",
		Short:   "Update the image of a pod template",
		Long:    "Update existing container images of resources: pods, and any kind with a pod template. * is all containers.",
		Example: "  anyctl set image deployment/web web=nginx:2\n  anyctl set image deployments --all '*=nginx:2'",
		RunE: func(cmd *cobra.Command, args []string) error {
			resources, pairs, err := splitPairs(args, "image")
			if err != nil {
				return err
			}
			images, err := parseImages(pairs)
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), s, resources, "image updated", "", func(_ *target, obj *unstructured.Object) error {
				return setImages(obj, images)
			})
		},
	}
	o.addFlags(cmd, s)
	return cmd
}

func parseImages(pairs []string) (map[string]string, error) {
	images := map[string]string{}
	var invalid []string
	for _, pair := range pairs {
		name, image, hasImage := strings.Cut(pair, "=")
		if !hasImage {
			invalid = append(invalid, pair)
			continue
		}
		images[name] = image
	}
	_, hasAll := images["*"]
	switch {
	case len(invalid) > 0:
		return nil, fmt.Errorf("invalid image format: %s", strings.Join(invalid, ", "))
	case len(images) == 0:
		return nil, errors.New("at least one image update is required")
	case hasAll && len(images) > 1:
		return nil, errors.New("all containers are already specified by *, but saw more than one container_name=container_image pairs")
	}
	return images, nil
}

func setImages(obj *unstructured.Object, images map[string]string) error {
	containers, err := containersOf(obj)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(images)) {
		found := false
		for _, c := range containers {
			if c.name == name || name == "*" {
				c.content["image"] = images[name]
				found = true
			}
		}
		if !found {
			errs = append(errs, fmt.Errorf("unable to find container named %q", name))
		}
	}
	return errors.Join(errs...)
}

// podSpecPath returns the path of the pod's spec in an object: a pod, or one with a template for pods.
func podSpecPath(obj *unstructured.Object) ([]string, error) {
	if obj.GetKind() == "Pod" && obj.GetAPIVersion() == "v1" {
		return []string{"spec"}, nil
	}
	for _, path := range [][]string{
		{"spec", "template", "spec"},
		{"spec", "jobTemplate", "spec", "template", "spec"},
	} {
		if _, found, _ := unstructured.Get[map[string]any](obj, path...); found {
			return path, nil
		}
	}
	return nil, fmt.Errorf("the object is not a pod or does not have a pod template: %s", obj.GetKind())
}

// container is a container of a pod's spec, which changes write to.
type container struct {
	content map[string]any
	name    string
}

// containersOf returns the containers and the initial containers of an object; changes of their content change obj.
func containersOf(obj *unstructured.Object) ([]container, error) {
	path, err := podSpecPath(obj)
	if err != nil {
		return nil, err
	}
	var spec any = obj.Object
	for _, field := range path {
		content, _ := spec.(map[string]any)
		spec = content[field]
	}
	content, _ := spec.(map[string]any)
	var all []container
	for _, field := range []string{"containers", "initContainers"} {
		list, _ := content[field].([]any)
		for _, item := range list {
			if c, isObject := item.(map[string]any); isObject {
				name, _ := c["name"].(string)
				all = append(all, container{content: c, name: name})
			}
		}
	}
	return all, nil
}
