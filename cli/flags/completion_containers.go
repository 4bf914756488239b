package flags

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/unstructured"
)

// CompleteContainers completes the container names of the pod, or of the workload's pod template, in the first arguments: POD,
// TYPE/NAME, or POD:PATH as for cp.
func (c *Connection) CompleteContainers(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	for _, arg := range args {
		pod, _, _ := strings.Cut(arg, ":")
		typeName, name, isPair := strings.Cut(pod, "/")
		if !isPair {
			typeName = "pods"
			name = pod
		}
		if names := c.containers(cmd.Context(), typeName, name); len(names) > 0 {
			return matching(names, prefix), noFiles
		}
	}
	return nil, noFiles
}

// CompleteContainerValues completes objects and then container names: TYPE NAME CONTAINER=VALUE... and TYPE/NAME CONTAINER=VALUE...
func (c *Connection) CompleteContainerValues(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 || len(args) == 1 && !strings.Contains(args[0], "/") {
		return c.CompleteTargets(cmd, args, prefix)
	}
	typeName, name, isPair := strings.Cut(args[0], "/")
	if !isPair {
		name = args[1]
	}
	names := c.containers(cmd.Context(), typeName, name)
	for i := range names {
		names[i] += "="
	}
	return matching(names, prefix), noFiles | cobra.ShellCompDirectiveNoSpace
}

// containers returns the names of an object's containers: of a pod, a pod template or a CronJob.
func (c *Connection) containers(ctx context.Context, typeName, name string) (names []string) {
	ctx, cancel := context.WithTimeout(ctx, CompletionTimeout)
	defer cancel()
	handle, err := c.Handle(ctx, typeName)
	if err != nil {
		return nil
	}
	obj, err := handle.Get(ctx, name, nil)
	if err != nil {
		return nil
	}
	for _, path := range []string{"spec", "spec.template.spec", "spec.jobTemplate.spec.template.spec"} {
		for _, field := range []string{"containers", "initContainers", "ephemeralContainers"} {
			steps := append(strings.Split(path, "."), field, "[*]", "name")
			found, _ := unstructured.GetAll[string](obj, steps...) // an object without the path has no containers there
			names = append(names, found...)
		}
	}
	return names
}
