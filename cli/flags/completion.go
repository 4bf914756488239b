package flags

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/anykind/anykind/unstructured"
)

const (
	// CompletionTimeout limits a completion, because the shell waits for it.
	CompletionTimeout = 5 * time.Second
	// maxCompletions limits the number of listed names.
	maxCompletions = 1000
	// sampleSize limits the objects read for completions of labels and fields.
	sampleSize = 20
)

const noFiles = cobra.ShellCompDirectiveNoFileComp

// RegisterCompletions completes the values of the connection flags. cmd must have the flags of AddFlags.
func (c *Connection) RegisterCompletions(cmd *cobra.Command) error {
	for flag, complete := range map[string]cobra.CompletionFunc{
		"context":   c.completeKubeconfig(func(file *kubeconfig.File) []string { return slices.Collect(maps.Keys(file.Contexts)) }),
		"cluster":   c.completeKubeconfig(func(file *kubeconfig.File) []string { return slices.Collect(maps.Keys(file.Clusters)) }),
		"user":      c.completeKubeconfig(func(file *kubeconfig.File) []string { return slices.Collect(maps.Keys(file.Users)) }),
		"namespace": c.CompleteNamespaces,
	} {
		if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
			return err
		}
	}
	return nil
}

// completeKubeconfig completes the names of entries of the kubeconfig files.
func (c *Connection) completeKubeconfig(names func(*kubeconfig.File) []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		file, err := transport.LoadKubeconfig(c.Kubeconfig)
		if err != nil {
			return nil, noFiles
		}
		return matching(names(file), prefix), noFiles
	}
}

// CompleteContexts completes the names of contexts, as an argument.
func (c *Connection) CompleteContexts(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.completeKubeconfig(func(file *kubeconfig.File) []string { return slices.Collect(maps.Keys(file.Contexts)) })(cmd, args, prefix)
}

// CompleteClusters completes the names of clusters, as an argument.
func (c *Connection) CompleteClusters(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.completeKubeconfig(func(file *kubeconfig.File) []string { return slices.Collect(maps.Keys(file.Clusters)) })(cmd, args, prefix)
}

// CompleteUsers completes the names of users, as an argument.
func (c *Connection) CompleteUsers(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.completeKubeconfig(func(file *kubeconfig.File) []string { return slices.Collect(maps.Keys(file.Users)) })(cmd, args, prefix)
}

// CompleteNamespaces completes the names of namespaces.
func (c *Connection) CompleteNamespaces(cmd *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), CompletionTimeout)
	defer cancel()
	return c.names(ctx, "namespaces", prefix), noFiles
}

// types completes the names of accepted resources with all verbs: an argument TYPE[,TYPE]. A nil accepts means all.
func (c *Connection) types(ctx context.Context, prefix string, accepts func(*discovery.Resource) bool, verbs ...string) []cobra.Completion {
	client, err := c.Client(ctx)
	if err != nil {
		return nil
	}
	snapshot, err := client.Discovery().Snapshot(ctx)
	if err != nil {
		return nil
	}
	listed, prefix := cutLast(prefix, ",")
	names := resourceNames(snapshot, strings.Contains(prefix, "."), accepts, verbs)
	completions := matching(names, prefix)
	for i := range completions {
		completions[i] = listed + completions[i]
	}
	return completions
}

// resourceNames returns the names of accepted resources with all verbs, a name for each. It is the plural, and with the group if withGroup is
// set or an earlier resource has the same plural.
func resourceNames(snapshot *discovery.Snapshot, withGroup bool, accepts func(*discovery.Resource) bool, verbs []string) (names []string) {
	seen := map[string]bool{}
	for resource := range snapshot.PreferredResources(&discovery.ResourceFilter{Verbs: verbs}) {
		if accepts != nil && !accepts(resource) {
			continue
		}
		name := resource.GVR.Resource
		if resource.GVR.Group != "" && (withGroup || seen[name]) {
			name += "." + resource.GVR.Group
		}
		seen[resource.GVR.Resource] = true
		names = append(names, name)
	}
	return names
}

// cutLast splits a text after its last separator.
func cutLast(text, separator string) (before, after string) {
	at := strings.LastIndex(text, separator) + len(separator)
	if at < len(separator) {
		return "", text
	}
	return text[:at], text[at:]
}

// CompleteTargets completes arguments TYPE [NAME…] and TYPE/NAME….
func (c *Connection) CompleteTargets(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.CompleteTargetsFor("get")(cmd, args, prefix)
}

// CompleteTargetsFor is [Connection.CompleteTargets] with the types that have the verbs get and verb.
func (c *Connection) CompleteTargetsFor(verb string) cobra.CompletionFunc {
	return c.CompleteTargetsWith(nil, verb)
}

// CompleteTargetsWith is [Connection.CompleteTargets] with the accepted types that have the verb get and all verbs. nil accepts all.
func (c *Connection) CompleteTargetsWith(accepts func(*discovery.Resource) bool, verbs ...string) cobra.CompletionFunc {
	verbs = append([]string{"get"}, verbs...)
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return c.targets(cmd, args, prefix, accepts, verbs...)
	}
}

func (c *Connection) targets(cmd *cobra.Command, args []string, prefix string, accepts func(*discovery.Resource) bool, verbs ...string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), CompletionTimeout)
	defer cancel()
	typeName, namePrefix, isPair := strings.Cut(prefix, "/")
	switch {
	case isPair:
		completions := c.names(ctx, typeName, namePrefix)
		for i := range completions {
			completions[i] = typeName + "/" + completions[i]
		}
		return completions, noFiles
	case len(args) == 0:
		return c.types(ctx, prefix, accepts, verbs...), noFiles
	case strings.Contains(args[0], "/"):
		return c.types(ctx, prefix, accepts, verbs...), noFiles | cobra.ShellCompDirectiveNoSpace
	}
	completions := c.names(ctx, args[0], prefix)
	return slices.DeleteFunc(completions, func(name string) bool { return slices.Contains(args[1:], name) }), noFiles
}

// CompletePods completes the name of a pod as the first argument.
func (c *Connection) CompletePods(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	if strings.Contains(prefix, "/") {
		return c.CompleteTargets(cmd, args, prefix)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), CompletionTimeout)
	defer cancel()
	return c.names(ctx, "pods", prefix), noFiles
}

// CompleteNodes completes the names of nodes.
func (c *Connection) CompleteNodes(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.completeNames(cmd, "nodes", args, prefix)
}

// CompleteDefinitions completes the names of CustomResourceDefinitions.
func (c *Connection) CompleteDefinitions(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.completeNames(cmd, "customresourcedefinitions", args, prefix)
}

// CompleteNames returns a function that completes the name of an object, as the value of a flag.
func (c *Connection) CompleteNames(typeName string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return c.completeNames(cmd, typeName, nil, prefix)
	}
}

// CompleteTypes completes the names of types, as the value of a flag: TYPE[,TYPE].
func (c *Connection) CompleteTypes(cmd *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), CompletionTimeout)
	defer cancel()
	return c.types(ctx, prefix, nil), noFiles
}

// completeNames completes the names of objects, except for the previous arguments.
func (c *Connection) completeNames(cmd *cobra.Command, typeName string, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), CompletionTimeout)
	defer cancel()
	return slices.DeleteFunc(c.names(ctx, typeName, prefix), func(name string) bool { return slices.Contains(args, name) }), noFiles
}

// names returns the names of objects with a prefix. Tables without objects are the smallest response with names.
func (c *Connection) names(ctx context.Context, typeName, prefix string) []cobra.Completion {
	handle, err := c.Handle(ctx, typeName)
	if err != nil {
		return nil
	}
	return namesOf(ctx, handle, prefix)
}

func namesOf(ctx context.Context, handle *dynamic.Resource, prefix string) []cobra.Completion {
	var names []string
	for row, err := range handle.Tables(metav1.IncludeNone).List(ctx, nil) {
		if err != nil || len(names) == maxCompletions {
			break
		}
		if name := nameCell(row); isCandidate(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// isCandidate reports whether name has the prefix and no control characters. Shells show candidates in a terminal, split them at
// line breaks, and show the text behind a tab as a description.
func isCandidate(name, prefix string) bool {
	return strings.HasPrefix(name, prefix) && !strings.Contains(name, "\t") && printable.Line(name) == name
}

func nameCell(row *dynamic.TableRow) string {
	for i, column := range row.Columns {
		if column.Format == "name" && i < len(row.Cells) {
			name, _ := row.Cells[i].(string)
			return name
		}
	}
	return ""
}

// CompleteLabels completes label names found on objects of the type in the first argument: TYPE -L NAME[,NAME].
func (c *Connection) CompleteLabels(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	listed, prefix := cutLast(prefix, ",")
	var names []string
	c.sample(cmd.Context(), args, func(obj *unstructured.Object) { names = slices.AppendSeq(names, maps.Keys(obj.GetLabels())) })
	completions := matching(names, prefix)
	for i := range completions {
		completions[i] = listed + completions[i]
	}
	return completions, noFiles | cobra.ShellCompDirectiveNoSpace
}

// sample calls see for up to sampleSize objects of the type in the first argument. It lists the namespace, or all namespaces if
// the namespace has no object of the type.
func (c *Connection) sample(ctx context.Context, args []string, see func(obj *unstructured.Object)) {
	if len(args) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, CompletionTimeout)
	defer cancel()
	handle, err := c.Handle(ctx, typeOf(args))
	if err != nil {
		return
	}
	for _, in := range []*dynamic.Resource{handle, handle.AllNamespaces()} {
		page, err := in.ListPage(ctx, &metav1.ListOptions{Limit: sampleSize})
		if err != nil || len(page.Items) == 0 {
			continue
		}
		for _, obj := range page.Items {
			see(obj)
		}
		return
	}
}

// matching returns the candidates with a prefix, sorted and without duplicates.
func matching(names []string, prefix string) []cobra.Completion {
	names = slices.DeleteFunc(names, func(name string) bool { return !isCandidate(name, prefix) })
	slices.Sort(names)
	return slices.Compact(names)
}
