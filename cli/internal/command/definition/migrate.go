package definition

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/cli/progress"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/storagemigration"
	"github.com/anykind/anykind/unstructured"
)

const definitionType = "customresourcedefinitions.apiextensions.k8s.io"

type migrateOptions struct {
	*command.State
	storagemigration.Options

	output command.Output
	all    bool
	method string
}

func migrateCommand(s *command.State) *cobra.Command {
	o := &migrateOptions{State: s}
	cmd := &cobra.Command{
		Use:   "migrate (NAME... | --all)",
		Short: "Rewrite the objects of definitions in the storage version",
		Long: "Rewrite the stored objects of CustomResourceDefinitions in the storage version, and remove all other versions from " +
			"status.storedVersions. These versions can then be removed from the definition. Entries of managedFields of versions that " +
			"are not served are moved to the storage version, because the server rejects applies after their removal.\n\n" +
			"The command can be interrupted and repeated. If objects fail, the others are rewritten, status.storedVersions stays, and " +
			"the exit code is 1. Built-in kinds have no storedVersions. With -o, each migrated definition is printed.",
		Example: "  anyctl crd migrate gears.example.com\n  anyctl crd migrate --all --dry-run",
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.all == (len(args) > 0) {
				return command.UsageError(cmd, "error: either names or --all is required")
			}
			return o.run(cmd.Context(), args)
		},
	}
	fs := cmd.Flags()
	o.output.AddFlags(fs)
	fs.BoolVar(&o.all, "all", false, "Migrate all definitions.")
	fs.BoolVar(&o.DryRun, "dry-run", false, "Send dry runs only: show the objects that would fail.")
	fs.StringVar(&o.method, "method", "auto", `Must be "server", a StorageVersionMigration, "client", or "auto": server where it is served.`)
	fs.Float64Var(&o.QPS, "qps", 0, "The maximum number of patches per second of the client (default 100). A negative number is no limit.")
	return cmd
}

func (o *migrateOptions) run(ctx context.Context, names []string) error {
	switch o.method {
	case "auto":
	case string(storagemigration.ByServer), string(storagemigration.ByClient):
		o.Method = storagemigration.Method(o.method)
	default:
		return fmt.Errorf(`Invalid method value (%v). Must be "auto", "server", or "client".`, o.method)
	}
	if err := o.output.Complete(o.Out, flags.DryRunNone); err != nil {
		return err
	}
	client, err := o.Client(ctx)
	if err != nil {
		return err
	}
	if o.all {
		if names, err = definitionNames(ctx, client); err != nil {
			return err
		}
	}
	var errs []error
	for _, name := range names {
		err := o.migrate(ctx, client, name)
		if ctx.Err() != nil {
			return errors.Join(append(errs, err)...)
		}
		if !o.all || !apierrors.IsNotFound(err) { // deleted meanwhile
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func definitionNames(ctx context.Context, client *dynamic.Client) (names []string, err error) {
	definitions, err := client.Resource(ctx, definitionType)
	if err != nil {
		return nil, err
	}
	for obj, err := range definitions.Metadata().List(ctx, nil) {
		if err != nil {
			return nil, err
		}
		names = append(names, obj.GetName())
	}
	return names, nil
}

// migrate migrates a definition and prints a line. With -o it prints the definition, and the line to the standard error stream.
func (o *migrateOptions) migrate(ctx context.Context, client *dynamic.Client, name string) error {
	display := progress.New(o.Err)
	defer display.Close()
	display.Update(name, "%s: waiting for the server", name)
	opts := o.Options
	stderr := display.Above(o.Err)
	opts.OnProgress = func(p dynamic.ForEachProgress) {
		if p.Err != nil {
			_, _ = fmt.Fprintf(stderr, "error: %s %q: %s\n", name, strings.TrimPrefix(p.Key.String(), "/"), printable.Line(p.Err.Error()))
		}
		display.Update(name, "%s: %d of %d objects, %d failed", name, p.Done, p.Total, p.Failed)
	}
	result, err := storagemigration.Migrate(ctx, client, name, &opts)
	display.Close()
	if err != nil {
		return withoutObjects(name, result, err)
	}
	const line = "customresourcedefinition.apiextensions.k8s.io/%s %s"
	if o.output.IsDefault() {
		return o.Printf(line+"\n", name, describe(result, o.DryRun))
	}
	o.Errorf(line, name, describe(result, o.DryRun))
	return o.print(ctx, client, name, result)
}

// print prints a migrated definition. For a dry run it has the status.storedVersions of a migration.
func (o *migrateOptions) print(ctx context.Context, client *dynamic.Client, name string, result *storagemigration.Result) error {
	definitions, err := client.Resource(ctx, definitionType)
	if err != nil {
		return err
	}
	definition, err := definitions.Get(ctx, name, nil)
	if err != nil {
		return err
	}
	if o.DryRun {
		if err := unstructured.Set(definition, []string{result.StorageVersion}, "status", "storedVersions"); err != nil {
			return err
		}
	}
	return o.output.Object(definition, "")
}

// withoutObjects returns the error of a migration without the printed errors of its objects.
func withoutObjects(name string, result *storagemigration.Result, err error) error {
	var joined interface{ Unwrap() []error }
	if result == nil || result.Failed == 0 || !errors.As(err, &joined) {
		return err
	}
	errs := []error{fmt.Errorf("%s: %d of %d objects failed, status.storedVersions is not changed", name, result.Failed, result.Objects)}
	for _, part := range joined.Unwrap() {
		var failed *dynamic.ObjectError
		if !errors.As(part, &failed) {
			errs = append(errs, part)
		}
	}
	return errors.Join(errs...)
}

// describe returns the text for a result: "migrated to v2 (8 objects, 5 rewritten, v1 pruned)".
func describe(r *storagemigration.Result, isDryRun bool) string {
	operation := "migrated to " + r.StorageVersion
	details := []string{fmt.Sprintf("%d objects", r.Objects)}
	if len(r.Pruned) == 0 && r.ManagedFields == 0 {
		operation = "unchanged in " + r.StorageVersion
	} else if r.ByServer {
		details = append(details, "rewritten by the server")
	} else if !isDryRun {
		details = append(details, fmt.Sprintf("%d rewritten", r.Rewritten))
	}
	if r.ManagedFields > 0 {
		details = append(details, fmt.Sprintf("managedFields of %d moved", r.ManagedFields))
	}
	if len(r.Pruned) > 0 {
		details = append(details, strings.Join(r.Pruned, ", ")+" pruned")
	}
	mode := ""
	if isDryRun {
		mode = " (server dry run)"
	}
	return fmt.Sprintf("%s (%s)%s", operation, strings.Join(details, ", "), mode)
}
