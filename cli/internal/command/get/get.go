// Package get implements the reading commands: get, events, api-resources, api-versions, version and completion.
package get

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/cli/resource"
)

// Commands returns the package's commands.
func Commands(s *command.State) []*cobra.Command {
	return []*cobra.Command{
		newGet(s), newInventory(s), newEvents(s), newAPIResources(s), newAPIVersions(s), newVersion(s), newCompletion(s),
	}
}

// getCommand is the command get.
type getCommand struct {
	*command.State
	output *print.Flags
	finder resource.Finder

	raw, subresource                    string
	watch, watchOnly, outputWatchEvents bool
	ignoreNotFound                      bool
	oneTable                            bool
	contexts                            []string
}

func newGet(s *command.State) *cobra.Command {
	c := &getCommand{State: s, output: print.NewFlags(), finder: resource.Finder{Connection: s.Connection, AllowTypes: true}}
	cmd := &cobra.Command{
		Use:        "get (TYPE[.VERSION][.GROUP] [NAME ...] | TYPE[.VERSION][.GROUP]/NAME ...)",
		Short:      "Display one or many resources",
		Long:       "Display one or many resources of any kind: as the server's tables, or in the format of --output.",
		SuggestFor: []string{"list", "ls"},
		RunE:       c.run,
	}
	fs := cmd.Flags()
	c.output.AddFlags(fs)
	c.finder.Selection.AddFlags(fs)
	c.finder.Selection.AddChunkFlag(fs)
	c.finder.Files.In = s.In
	c.finder.Files.AddFlags(fs, "identifying the resource to get from a server.")
	fs.StringVar(&c.raw, "raw", "", "Raw URI to request from the server.  Uses the transport specified by the kubeconfig file.")
	fs.BoolVarP(&c.watch, "watch", "w", false, "After listing/getting the requested object, watch for changes.")
	fs.BoolVar(&c.watchOnly, "watch-only", false, "Watch for changes to the requested object(s), without listing/getting first.")
	fs.BoolVar(&c.outputWatchEvents, "output-watch-events", false, "Output watch event objects when --watch or --watch-only is used. Existing objects are output as initial ADDED events.")
	fs.BoolVar(&c.ignoreNotFound, "ignore-not-found", false, "If set to true, suppresses NotFound error for specific objects that do not exist. Using this flag with commands that query for collections of resources has no effect when no resources are found.")
	fs.StringVar(&c.subresource, "subresource", "", "If specified, gets the subresource of the requested object.")
	fs.BoolVar(&c.oneTable, "one-table", false, "Print several kinds in one table with the columns of all, as a watch does.")
	fs.StringSliceVar(&c.contexts, "contexts", nil, "Get the objects of several kubeconfig contexts at once, with a column of the context. A cluster that cannot be reached delays no others; --request-timeout limits the wait for it.")
	registerCompletions(s, cmd)
	return cmd
}

func registerCompletions(s *command.State, cmd *cobra.Command) {
	for flag, complete := range map[string]cobra.CompletionFunc{
		"output":        s.Connection.CompleteOutput(print.Formats()),
		"label-columns": s.Connection.CompleteLabels,
		"sort-by":       s.Connection.CompleteFields,
	} {
		if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
			s.Errorf("error: %v", err)
		}
	}
}

func (c *getCommand) run(cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	if err := c.validate(args); err != nil {
		return err
	}
	if c.raw != "" {
		return c.Raw(ctx, http.MethodGet, c.raw, "")
	}
	isWatch := c.watch || c.watchOnly
	if len(args) == 0 && !isWatch && c.finder.Files.IsEmpty() {
		c.Errorf("You must specify the type of resource to get. Use \"anyctl api-resources\" for a complete list of supported resources.\n")
		return command.UsageError(cmd, "Required resource not specified.\nUse \"anyctl explain <resource>\" for a detailed description of that resource (e.g. anyctl explain pods).")
	}
	if isWatch && c.output.SortBy != "" {
		name := "--watch"
		ignored := "will be ignored for watch events received"
		if !c.watch {
			name = "--watch-only"
			ignored = "will be ignored"
		}
		c.Errorf("warning: %s requested, --sort-by %s", name, ignored)
	}
	if len(c.contexts) > 0 {
		return c.runContexts(ctx, args)
	}
	targets, err := c.finder.Targets(ctx, args)
	if err != nil {
		return err
	}
	if c.subresource != "" {
		for i := range targets {
			if targets[i].Name == "" {
				return errors.New("subresource cannot be used when bulk resources are specified")
			}
			targets[i].Resource = targets[i].Resource.Subresource(c.subresource)
		}
	}
	switch {
	case isWatch:
		return c.runWatch(ctx, targets)
	case c.output.IsTable():
		return c.printTables(ctx, targets)
	}
	return c.printObjects(ctx, targets)
}

func (c *getCommand) validate(args []string) error {
	if c.raw != "" {
		if len(args) > 0 {
			return errors.New("arguments may not be passed when --raw is specified")
		}
		if c.watch || c.watchOnly || c.finder.Selection.LabelSelector != "" {
			return errors.New("--raw may not be specified with other flags that filter the server request or alter the output")
		}
		if c.output.Output != "" {
			return errors.New("--raw and --output are mutually exclusive")
		}
		if _, err := url.ParseRequestURI(c.raw); err != nil {
			return fmt.Errorf("--raw must be a valid URL path: %w", err)
		}
	}
	if c.outputWatchEvents && !c.watch && !c.watchOnly {
		return errors.New("--output-watch-events option can only be used with --watch or --watch-only")
	}
	return c.output.Validate()
}

// listOptions returns the options of a list. Without chunks a list is a single page.
func (c *getCommand) listOptions() *metav1.ListOptions {
	opts := c.finder.Selection.ListOptions()
	if opts.Limit <= 0 {
		opts.Limit = 1 << 30
	}
	return opts
}

func (c *getCommand) unlessIgnored(err error) error {
	if c.ignoreNotFound && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// noResources writes kubectl's message for an empty result.
func (c *getCommand) noResources(ctx context.Context, targets []resource.Target) error {
	text, err := c.finder.NoneFound(ctx, targets)
	if err == nil {
		c.Errorf("%s", text)
	}
	return err
}
