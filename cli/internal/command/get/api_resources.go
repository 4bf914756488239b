package get

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/discovery"
)

// apiResourcesCommand is the command api-resources.
type apiResourcesCommand struct {
	*command.State
	group, output, sortBy string
	namespaced            bool
	verbs, categories     []string
	cached, noHeaders     bool
}

func newAPIResources(s *command.State) *cobra.Command {
	c := &apiResourcesCommand{State: s}
	cmd := &cobra.Command{
		Use:   "api-resources",
		Short: "Print the supported API resources on the server",
		RunE:  c.run,
	}
	fs := cmd.Flags()
	fs.StringVar(&c.group, "api-group", "", "Limit to resources in the specified API group.")
	fs.BoolVar(&c.namespaced, "namespaced", true, "If false, non-namespaced resources will be returned, otherwise returning namespaced resources by default.")
	fs.StringSliceVar(&c.verbs, "verbs", nil, "Limit to resources that support the specified verbs.")
	fs.StringSliceVar(&c.categories, "categories", nil, "Limit to resources that belong to the specified categories.")
	fs.StringVar(&c.sortBy, "sort-by", "", "If non-empty, sort list of resources using specified field. The field can be either 'name' or 'kind'.")
	fs.BoolVar(&c.cached, "cached", false, "Use the cached list of resources if available.")
	fs.BoolVar(&c.noHeaders, "no-headers", false, "When using the default or custom-column output format, don't print headers (default print headers).")
	fs.StringVarP(&c.output, "output", "o", "", "Output format. One of: (json, yaml, name, wide).")
	return cmd
}

func (c *apiResourcesCommand) run(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return command.UsageError(cmd, "unexpected arguments: %v", args)
	}
	if !slices.Contains([]string{"", "json", "yaml", "name", "wide"}, c.output) {
		return fmt.Errorf("unable to match a printer suitable for the output format %q, allowed formats are: json,name,wide,yaml", c.output)
	}
	if !slices.Contains([]string{"", "name", "kind"}, c.sortBy) {
		return errors.New("--sort-by accepts only name or kind")
	}
	snapshot, err := snapshot(cmd.Context(), c.State, c.cached)
	if err != nil {
		return err
	}
	filter := &discovery.ResourceFilter{Verbs: c.verbs, Categories: c.categories}
	if cmd.Flags().Changed("api-group") {
		filter.Groups = []string{c.group}
	}
	if cmd.Flags().Changed("namespaced") {
		filter.Namespaced = &c.namespaced
	}
	resources := slices.Collect(snapshot.PreferredResources(filter))
	c.sort(resources)
	return errors.Join(c.print(resources), unhealthy(snapshot))
}

// snapshot returns the served resources. With cached they come from the discovery cache and may be hours old.
func snapshot(ctx context.Context, s *command.State, cached bool) (*discovery.Snapshot, error) {
	client, err := s.Client(ctx)
	if err != nil {
		return nil, err
	}
	if cached {
		return client.Discovery().Snapshot(ctx)
	}
	return client.Discovery().Refresh(ctx)
}

// unhealthy returns an error with the unreadable and stale group versions.
func unhealthy(snapshot *discovery.Snapshot) error {
	var failed []string
	for gv, version := range snapshot.Versions() {
		switch {
		case version.Err != nil:
			failed = append(failed, fmt.Sprintf("%s: %v", gv, version.Err))
		case version.Stale:
			failed = append(failed, fmt.Sprintf("%s: stale GroupVersion discovery: %s", gv, gv))
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("unable to retrieve the complete list of server APIs: %s", strings.Join(failed, ", "))
}

func (c *apiResourcesCommand) sort(resources []*discovery.Resource) {
	key := func(r *discovery.Resource) string {
		switch c.sortBy {
		case "name":
			return r.GVR.Resource
		case "kind":
			return r.GVK.Kind
		}
		return r.GVR.Group
	}
	slices.SortStableFunc(resources, func(a, b *discovery.Resource) int {
		if order := strings.Compare(key(a), key(b)); order != 0 {
			return order
		}
		return strings.Compare(a.GVR.Resource, b.GVR.Resource)
	})
}

func (c *apiResourcesCommand) print(resources []*discovery.Resource) error {
	switch c.output {
	case "name":
		for _, r := range resources {
			if _, err := fmt.Fprintln(c.Out, r.GVR.GroupResource()); err != nil {
				return err
			}
		}
		return nil
	case "json", "yaml":
		return c.encode(resources)
	}
	header := []string{"NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"}
	if c.output == "wide" {
		header = append(header, "VERBS", "CATEGORIES")
	}
	if c.noHeaders {
		header = nil
	}
	columns := print.NewColumns(c.Out, header)
	for _, r := range resources {
		row := []string{
			r.GVR.Resource, strings.Join(r.ShortNames, ","), r.GVR.GroupVersion().String(),
			strconv.FormatBool(r.Namespaced), r.GVK.Kind,
		}
		if c.output == "wide" {
			row = append(row, strings.Join(r.Verbs, ","), strings.Join(r.Categories, ","))
		}
		if err := columns.Row(row...); err != nil {
			return err
		}
	}
	return columns.Flush()
}

func (c *apiResourcesCommand) encode(resources []*discovery.Resource) error {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}}
	for _, r := range resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: r.GVR.Resource, SingularName: r.Singular, Namespaced: r.Namespaced,
			Group: r.GVR.Group, Version: r.GVR.Version, Kind: r.GVK.Kind,
			Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
		})
	}
	return encode(c.Out, c.output, "    ", &list)
}

// encode writes a struct as JSON or YAML.
func encode(w io.Writer, format, indent string, value any) error {
	data, err := json.MarshalIndent(value, "", indent)
	if format == "yaml" {
		data, err = yaml.Marshal(value)
	} else {
		data = append(data, '\n')
	}
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

func newAPIVersions(s *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "api-versions",
		Short: "Print the supported API versions on the server, in the form of \"group/version\"",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return command.UsageError(cmd, "unexpected arguments: %v", args)
			}
			snapshot, err := snapshot(cmd.Context(), s, false)
			if err != nil {
				return err
			}
			var versions []string
			for gv := range snapshot.Versions() {
				versions = append(versions, gv.String())
			}
			slices.Sort(versions)
			_, err = io.WriteString(s.Out, strings.Join(versions, "\n")+"\n")
			return err
		},
	}
}
