package change

import (
	"errors"
	"fmt"
	"maps"
	"path"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/command/change/generate"
	"github.com/anykind/anykind/unstructured"
)

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
			return o.run(cmd.Context(), s, args, "resource requirements updated", "", func(_ *target, obj *unstructured.Object) error {
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
		requirements, _ := c.content["resources"].(map[string]any)
		if requirements == nil {
			requirements = map[string]any{}
		}
		for field, quantities := range changes {
			if len(quantities) == 0 {
				continue
			}
			current, _ := requirements[field].(map[string]any)
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
			account, resources := args[len(args)-1], args[:len(args)-1]
			const operation = "serviceaccount updated"
			return o.run(cmd.Context(), s, resources, operation, operation, func(t *target, obj *unstructured.Object) error {
				specPath, err := podSpecPath(obj)
				if err != nil {
					return fmt.Errorf("%s %w", t.pair(), err)
				}
				return unstructured.Set(obj, account, append(specPath, "serviceAccountName")...)
			})
		},
	}
	o.addFlags(cmd, s)
	return cmd
}
