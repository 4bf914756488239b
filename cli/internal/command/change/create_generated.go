package change

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/command/change/generate"
	"github.com/anykind/anykind/unstructured"
)

// addGenerators adds the subcommands of create for generating objects from flags.
func addGenerators(create *cobra.Command, s *command.State) {
	parents := map[string]*cobra.Command{"": create}
	for _, name := range []string{"secret", "service"} {
		parent := &cobra.Command{
			Use:   name,
			Short: fmt.Sprintf("Create a %s using a specified subcommand", name),
			RunE: func(cmd *cobra.Command, args []string) error {
				if len(args) > 0 {
					return command.UsageError(cmd, "unknown command %q for %q", args[0], cmd.CommandPath())
				}
				return cmd.Help()
			},
		}
		create.AddCommand(parent)
		parents[name] = parent
	}
	parents["service"].Aliases = []string{"svc"}
	for _, generator := range generate.All() {
		parents[generator.Parent].AddCommand(generatorCommand(s, generator))
	}
	create.AddCommand(tokenCommand(s))
}

func generatorCommand(s *command.State, generator *generate.Generator) *cobra.Command {
	o := &createOptions{}
	cmd := &cobra.Command{
		Use:                   generator.Use + " [--dry-run=server|client|none]",
		DisableFlagsInUseLine: true,
		Short:                 generator.Short,
		Aliases:               generator.Aliases,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, rest, err := nameAndCommand(cmd, args)
			if err != nil {
				return err
			}
			if err := o.complete(s); err != nil {
				return err
			}
			return o.generate(cmd.Context(), s, generator, name, rest)
		},
	}
	o.addFlags(cmd)
	if generator.HasData {
		cmd.Flags().BoolVar(&o.appendHash, "append-hash", false, "Append a hash of the content to the name.")
	}
	if generator.AddFlags != nil {
		generator.AddFlags(cmd.Flags())
	}
	completeFlags(s, cmd, generator)
	for _, name := range generator.Required {
		_ = cmd.MarkFlagRequired(name) // cannot fail: the flag exists
	}
	return cmd
}

// completeFlags completes the values of a generator's flags.
func completeFlags(s *command.State, cmd *cobra.Command, generator *generate.Generator) {
	if !s.IsNamed(cmd.Name()) {
		return
	}
	complete := map[string]cobra.CompletionFunc{}
	for flag, field := range generator.Values {
		typeName, path, _ := strings.Cut(field, ".")
		complete[flag] = s.Connection.CompleteValues(typeName, path)
	}
	for flag, typeName := range generator.Names {
		complete[flag] = s.Connection.CompleteNames(typeName)
	}
	if cmd.Flags().Lookup("resource") != nil {
		complete["resource"] = s.Connection.CompleteTypes
	}
	for flag, function := range complete {
		if err := cmd.RegisterFlagCompletionFunc(flag, function); err != nil {
			s.Errorf("error: %v", err)
		}
	}
}

// nameAndCommand returns the name, the only argument before --, and the arguments behind --.
func nameAndCommand(cmd *cobra.Command, args []string) (name string, rest []string, err error) {
	count := cmd.ArgsLenAtDash()
	if count < 0 {
		count = len(args)
	}
	if count != 1 {
		return "", nil, command.UsageError(cmd, "exactly one NAME is required, got %d", count)
	}
	return args[0], args[1:], nil
}

func (o *createOptions) generate(ctx context.Context, s *command.State, generator *generate.Generator, name string, rest []string) error {
	if name == "" {
		return errors.New("name must be specified")
	}
	obj, err := generator.Generate(ctx, generatorEnvironment(s), name, rest)
	if err != nil {
		return err
	}
	if o.appendHash {
		if err := generate.AppendHash(obj); err != nil {
			return err
		}
	}
	if o.saveConfig {
		if err := command.SaveConfig(obj); err != nil {
			return err
		}
	}
	if o.write.DryRun == flags.DryRunClient {
		if namespace := s.Connection.NamespaceFlag; namespace != "" && !isClusterScoped(obj) {
			obj.SetNamespace(namespace)
		}
		return o.output.Object(obj, "created")
	}
	client, err := s.Client(ctx)
	if err != nil {
		return err
	}
	resource, err := client.ForKind(ctx, obj.GroupVersionKind())
	if err != nil {
		return err
	}
	created, err := resource.WithDefaults(o.write.Defaults()).Create(ctx, obj, nil)
	if err != nil && generator.Failure != "" {
		return errors.New(generator.Failure + command.ServerMessage(err))
	}
	if err != nil {
		return err
	}
	return o.output.Object(created, "created")
}

// isClusterScoped reports whether a generated object has no namespace. It sends no request.
func isClusterScoped(obj *unstructured.Object) bool {
	switch obj.GetKind() {
	case "Namespace", "ClusterRole", "ClusterRoleBinding", "PriorityClass":
		return true
	}
	return false
}

func generatorEnvironment(s *command.State) *generate.Environment {
	return &generate.Environment{
		Warn: s.Errorf,
		Resource: func(ctx context.Context, name string) (group, plural string, err error) {
			resource, err := s.Connection.Handle(ctx, name)
			if err != nil {
				return "", "", err
			}
			gvr := resource.APIResource().GVR
			return gvr.Group, gvr.Resource, nil
		},
		Object: func(ctx context.Context, pair string) (*unstructured.Object, error) {
			kind, name, found := strings.Cut(pair, "/")
			if !found {
				return nil, fmt.Errorf("%q: name the object as TYPE/NAME", pair)
			}
			resource, err := s.Connection.Handle(ctx, kind)
			if err != nil {
				return nil, err
			}
			return resource.Get(ctx, name, nil)
		},
	}
}
