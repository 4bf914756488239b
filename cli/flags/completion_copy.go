package flags

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// CompleteCopy completes the two arguments of cp: a local file, or POD: or NAMESPACE/POD: before a path in a container. Files in
// containers are left to the user.
func (c *Connection) CompleteCopy(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	isLocal := strings.HasPrefix(prefix, "/") || strings.HasPrefix(prefix, ".") || strings.HasPrefix(prefix, "~")
	switch {
	case len(args) > 1 || !isLocal && strings.Contains(prefix, ":"):
		return nil, noFiles
	case isLocal || len(args) == 1 && strings.Contains(args[0], ":"):
		return nil, cobra.ShellCompDirectiveDefault // the shell completes files
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), CompletionTimeout)
	defer cancel()
	completions := localFiles(prefix)
	namespace, pod, isPair := strings.Cut(prefix, "/")
	if isPair {
		completions = append(completions, c.podPaths(ctx, namespace, pod)...)
	} else {
		for _, name := range c.names(ctx, "namespaces", prefix) {
			completions = append(completions, name+"/")
		}
		completions = append(completions, c.podPaths(ctx, "", prefix)...)
	}
	slices.Sort(completions)
	return slices.Compact(completions), noFiles | cobra.ShellCompDirectiveNoSpace
}

// podPaths returns the names of pods, in the connection's namespace for "", with a colon.
func (c *Connection) podPaths(ctx context.Context, namespace, prefix string) (paths []cobra.Completion) {
	pods, err := c.Handle(ctx, "pods")
	if err != nil {
		return nil
	}
	begin := ""
	if namespace != "" {
		pods = pods.Namespace(namespace)
		begin = namespace + "/"
	}
	for _, name := range namesOf(ctx, pods, prefix) {
		paths = append(paths, begin+name+":")
	}
	return paths
}

// localFiles returns the files whose paths begin with prefix, folders with a slash.
func localFiles(prefix string) (files []cobra.Completion) {
	folder, base := filepath.Split(prefix)
	entries, err := os.ReadDir(filepath.Join(".", folder))
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		name := entry.Name()
		isHidden := strings.HasPrefix(name, ".") && base == ""
		if isHidden || !isCandidate(name, base) {
			continue
		}
		if entry.IsDir() {
			name += "/"
		}
		files = append(files, folder+name)
	}
	return files
}
