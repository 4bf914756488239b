package change

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/command/change/generate"
	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/cli/resource"
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
			if err := o.checkResources(cmd.Context(), resources); err != nil {
				return err
			}
			images, err := parseImages(pairs)
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), s, resources, "image updated", "", func(_ *resource.Info, obj *unstructured.Object) error {
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

// podSpecPath returns the path of the pod spec in a pod, or in an object with a pod template.
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

// container is a container of a pod spec. content is shared with the object.
type container struct {
	content map[string]any
	name    string
}

// containersOf returns the containers and init containers of an object. Their content is shared with obj.
func containersOf(obj *unstructured.Object) ([]container, error) {
	path, err := podSpecPath(obj)
	if err != nil {
		return nil, err
	}
	spec := nested.Map(obj.Object, path...)
	var all []container
	for _, field := range []string{"containers", "initContainers"} {
		for _, item := range nested.List(spec, field) {
			if content := nested.Map(item); content != nil {
				all = append(all, container{content: content, name: nested.String(content, "name")})
			}
		}
	}
	return all, nil
}

func setResourcesCommand(s *command.State) *cobra.Command {
	o := &setOptions{failure: "failed to patch resources update to pod template "}
	var containers, limits, requests string
	cmd := &cobra.Command{
		Use:     "resources (-f FILENAME | TYPE NAME) [--limits=LIMITS] [--requests=REQUESTS]",
		Short:   "Update resource requests/limits on objects with pod templates",
		Long:    "Update the limits and requests of the containers of pods, and of any kind with a pod template. Others than those given stay.",
		Example: "  anyctl set resources deployment web -c=web --limits=cpu=200m,memory=512Mi\n  anyctl set resources deployments --all --requests=cpu=100m",
		RunE: func(cmd *cobra.Command, args []string) error {
			if limits == "" && requests == "" {
				return errors.New("you must specify an update to requests or limits (in the form of --requests/--limits)")
			}
			changes := map[string]map[string]any{}
			for field, text := range map[string]string{"limits": limits, "requests": requests} {
				quantities, err := generate.ParseQuantities(text)
				if err != nil {
					return err
				}
				changes[field] = quantities
			}
			return o.run(cmd.Context(), s, args, "resource requirements updated", "", func(_ *resource.Info, obj *unstructured.Object) error {
				return setResources(obj, containers, changes)
			})
		},
	}
	o.addFlags(cmd, s)
	fs := cmd.Flags()
	fs.StringVarP(&containers, "containers", "c", "*", "The names of containers in the selected pod templates to change, all containers are selected by default - may use wildcards")
	fs.StringVar(&limits, "limits", "", "The resource requirement limits for this container. For example, 'cpu=100m,memory=256Mi'.")
	fs.StringVar(&requests, "requests", "", "The resource requirement requests for this container. For example, 'cpu=100m,memory=256Mi'.")
	return cmd
}

func setResources(obj *unstructured.Object, pattern string, changes map[string]map[string]any) error {
	containers, err := containersOf(obj)
	if err != nil {
		return err
	}
	found := false
	for _, c := range containers {
		matches, err := path.Match(pattern, c.name)
		if err != nil {
			return fmt.Errorf("--containers %q: %w", pattern, err)
		}
		if !matches {
			continue
		}
		found = true
		requirements := nested.Map(c.content, "resources")
		if requirements == nil {
			requirements = map[string]any{}
		}
		for field, quantities := range changes {
			if len(quantities) == 0 {
				continue
			}
			current := nested.Map(requirements, field)
			if current == nil {
				current = map[string]any{}
			}
			maps.Copy(current, quantities)
			requirements[field] = current
		}
		c.content["resources"] = requirements
	}
	if !found {
		return fmt.Errorf("unable to find container named %s", pattern)
	}
	return nil
}

func setServiceAccountCommand(s *command.State) *cobra.Command {
	o := &setOptions{failure: "failed to patch ServiceAccountName "}
	cmd := &cobra.Command{
		Use:     "serviceaccount (-f FILENAME | TYPE NAME) SERVICE_ACCOUNT",
		Aliases: []string{"sa"},
		Short:   "Update the service account of a resource",
		Long:    "Update the service account of pod templates.",
		Example: "  anyctl set serviceaccount deployment web robot",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("serviceaccount is required")
			}
			account := args[len(args)-1]
			resources := args[:len(args)-1]
			const operation = "serviceaccount updated"
			return o.run(cmd.Context(), s, resources, operation, operation, func(t *resource.Info, obj *unstructured.Object) error {
				specPath, err := podSpecPath(obj)
				if err != nil {
					return fmt.Errorf("%s %w", pair(t), err)
				}
				return unstructured.Set(obj, account, append(specPath, "serviceAccountName")...)
			})
		},
	}
	o.addFlags(cmd, s)
	return cmd
}
