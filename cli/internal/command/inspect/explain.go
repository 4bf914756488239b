package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/schema"
	"github.com/anykind/anykind/unstructured"
)

// explainOptions are the options of the command explain.
type explainOptions struct {
	*command.State

	schema.ExplainOptions
	apiVersion string
	output     string
	details    bool
}

func explainCommand(s *command.State) *cobra.Command {
	o := &explainOptions{State: s}
	cmd := &cobra.Command{
		Use:   "explain TYPE[.FIELD...]",
		Short: "Get documentation for a resource",
		Long: "Describe the fields of a kind as its API server does, from the schema that it publishes (OpenAPI v3).\n\n" +
			"The text is kubectl's. With --details, and as json and markdown, it also has defaults, constraints, list keys, merge " +
			"behaviour, CEL rules, immutable and deprecated fields. If the server says that the version is deprecated, its text is a warning.",
		Example: "  anyctl explain deploy\n  anyctl explain pods.spec.containers --details\n  anyctl explain certificates.cert-manager.io.spec --recursive\n" +
			"  anyctl explain hpa --api-version=autoscaling/v1 -o markdown",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(args); err != nil {
				return err
			}
			return o.run(cmd.Context(), args[0])
		},
		ValidArgsFunction: o.complete,
	}
	fs := cmd.Flags()
	fs.BoolVarP(&o.Recursive, "recursive", "R", false, "Print the fields of fields. Use --max-depth to cap the recursion depth.")
	fs.IntVar(&o.MaxDepth, "max-depth", 0, "Maximum recursion depth when printing nested fields with --recursive. 0 means no limit. Requires --recursive when greater than 0.")
	fs.StringVar(&o.apiVersion, "api-version", "", "Get different explanations for particular API version (API group/version)")
	fs.StringVarP(&o.output, "output", "o", "plaintext", "Format in which to render the schema (plaintext, json, markdown)")
	fs.BoolVar(&o.details, "details", false, "Also print defaults, constraints, list keys, merge behaviour, CEL rules, immutable and deprecated fields in plaintext.")
	if err := cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]cobra.Completion{"json", "markdown", "plaintext"}, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		s.Errorf("error: %v", err)
	}
	return cmd
}

func (o *explainOptions) validate(args []string) error {
	switch {
	case len(args) == 0:
		return errors.New(`You must specify the type of resource to explain. Use "anyctl api-resources" for a complete list of supported resources.`)
	case len(args) > 1:
		return errors.New("We accept only this format: explain RESOURCE")
	case o.MaxDepth > 0 && !o.Recursive:
		return errors.New("--max-depth requires --recursive")
	case o.MaxDepth < 0:
		return errors.New("--max-depth must be non-negative")
	case o.output == "plaintext-openapiv2":
		return errors.New("plaintext-openapiv2 is not supported: anyctl reads OpenAPI v3, which has all that OpenAPI v2 has (use plaintext)")
	case !slices.Contains([]string{"plaintext", "json", "markdown"}, o.output):
		return fmt.Errorf("unrecognized format: %s", o.output)
	}
	return nil
}

// run explains a target. While it waits for the server, it reads caches: discovery's cache during the request for the list of documents,
// and the cached document during the request for the warning. The requests are sequential: they share a connection.
func (o *explainOptions) run(ctx context.Context, target string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	names, err := parseTarget(target)
	if err != nil {
		return err
	}
	schemas, err := o.Connection.Schemas(ctx)
	if err != nil {
		return err
	}
	refreshed := make(chan error, 1)
	go func() { refreshed <- schemas.Refresh(ctx) }()
	gvk, path, err := o.resolve(ctx, names)
	if err != nil {
		cancel()
	}
	refreshErr := <-refreshed
	if err := cmp.Or(err, refreshErr); err != nil {
		return err
	}

	var warning string
	warned := make(chan error, 1)
	go func() {
		var err error
		warning, err = o.deprecation(ctx, gvk)
		warned <- err
	}()
	explanation, err := schemas.Explain(ctx, gvk, path, &o.ExplainOptions)
	if err != nil {
		cancel()
	}
	warnErr := <-warned
	if err := cmp.Or(err, warnErr); err != nil {
		return explainError(err)
	}
	if warning != "" {
		o.Connection.OnWarning(ctx, warning)
		if len(path) == 0 {
			explanation.Deprecated = warning
		}
	}
	return o.print(explanation)
}

// deprecation returns the server's warning about a deprecated version, or "" without one or without permission to read the objects.
func (o *explainOptions) deprecation(ctx context.Context, gvk runtimeschema.GroupVersionKind) (warning string, err error) {
	client, err := o.Client(ctx)
	if err != nil {
		return "", err
	}
	resource, err := client.ForKind(ctx, gvk)
	if err != nil {
		return "", err
	}
	warning, _ = command.Deprecation(ctx, resource)
	if warning == "" {
		return "", ctx.Err()
	}
	return warning, nil
}

// parseTarget splits TYPE[.GROUP][.FIELD...] into names.
func parseTarget(target string) ([]string, error) {
	names, err := unstructured.ParsePath(strings.TrimSuffix(target, "."))
	if err != nil || len(names) == 0 || strings.Contains(target, "[") {
		return nil, fmt.Errorf("%q is not TYPE[.FIELD...], such as pods.spec.containers.image", target)
	}
	return names, nil
}

// explain explains a target: TYPE[.GROUP][.FIELD...].
func (o *explainOptions) explain(ctx context.Context, target string, opts *schema.ExplainOptions) (*schema.Explanation, error) {
	names, err := parseTarget(target)
	if err != nil {
		return nil, err
	}
	gvk, path, err := o.resolve(ctx, names)
	if err != nil {
		return nil, err
	}
	schemas, err := o.Connection.Schemas(ctx)
	if err != nil {
		return nil, err
	}
	return schemas.Explain(ctx, gvk, path, opts)
}

// resolve splits the names of a target into a kind and the path of a field.
func (o *explainOptions) resolve(ctx context.Context, names []string) (gvk runtimeschema.GroupVersionKind, path []string, err error) {
	handle, err := o.Connection.Handle(ctx, names[0])
	if err != nil {
		return gvk, nil, err
	}
	client, err := o.Client(ctx)
	if err != nil {
		return gvk, nil, err
	}
	snapshot, err := client.Discovery().Snapshot(ctx)
	if err != nil {
		return gvk, nil, err
	}
	resource := handle.APIResource()
	path = names[1:]
	if o.apiVersion != "" {
		gvk, err = kindIn(snapshot, resource.GVR, o.apiVersion)
		return gvk, path, err
	}
	for candidate := range snapshot.PreferredResources(nil) { // TYPE.GROUP
		if candidate.GVR.Resource != names[0] {
			continue
		}
		if group := strings.Split(candidate.GVR.Group, "."); slices.Equal(group, path[:min(len(group), len(path))]) {
			return candidate.GVK, path[len(group):], nil
		}
	}
	return resource.GVK, path, nil
}

// kindIn returns the kind of a resource in an API version.
func kindIn(snapshot *discovery.Snapshot, gvr runtimeschema.GroupVersionResource, apiVersion string) (gvk runtimeschema.GroupVersionKind, err error) {
	gv, err := runtimeschema.ParseGroupVersion(apiVersion)
	if err != nil {
		return gvk, err
	}
	gvr = gv.WithResource(gvr.Resource)
	for resource := range snapshot.Resources() {
		if resource.GVR == gvr {
			return resource.GVK, nil
		}
	}
	return gvk, fmt.Errorf("couldn't find resource for %q", gvr)
}

// explainError returns kubectl's error for an unknown field, with suggestions.
func explainError(err error) error {
	var unknown *schema.UnknownFieldError
	if !errors.As(err, &unknown) {
		return err
	}
	err = fmt.Errorf("field %q does not exist", unknown.Field)
	if len(unknown.Suggestions) == 0 {
		return err
	}
	return exit.WithHelp(err, "\nDid you mean "+strings.Join(unknown.Suggestions, ", ")+"?")
}

func (o *explainOptions) print(explanation *schema.Explanation) error {
	switch o.output {
	case "json":
		encoder := json.NewEncoder(o.Out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "    ")
		return encoder.Encode(explanation)
	case "markdown":
		return explanation.WriteMarkdown(o.Out)
	}
	return explanation.WriteText(o.Out, &schema.TextOptions{Details: o.details})
}

// complete completes the names of types and, behind a dot, of fields.
func (o *explainOptions) complete(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	completions, directive := o.Connection.CompleteTargets(cmd, nil, prefix)
	ctx, cancel := context.WithTimeout(cmd.Context(), flags.CompletionTimeout)
	defer cancel()
	if at := strings.LastIndexByte(prefix, '.'); at > 0 {
		if explanation, err := o.explain(ctx, prefix[:at], nil); err == nil {
			for _, field := range explanation.Fields {
				if name := prefix[:at+1] + field.Name; strings.HasPrefix(name, prefix) && printable.Line(name) == name {
					completions = append(completions, cobra.CompletionWithDesc(name, printable.Line(field.Type)))
				}
			}
		}
	}
	return completions, directive | cobra.ShellCompDirectiveNoSpace
}
