package definition

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/cli/progress"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/storagemigration"
)

const definitionType = "customresourcedefinitions.apiextensions.k8s.io"

type migrateOptions struct {
	*command.State
	storagemigration.Options

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
			"the exit code is 1. Built-in kinds have no storedVersions.",
		Example: "  anyctl crd migrate gears.example.com\n  anyctl crd migrate --all --dry-run",
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.all == (len(args) > 0) {
				return command.UsageError(cmd, "error: either names or --all is required")
			}
			return o.run(cmd.Context(), args)
		},
	}
	fs := cmd.Flags()
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

// migrate migrates a definition and prints a line.
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
	return o.Printf("customresourcedefinition.apiextensions.k8s.io/%s %s\n", name, describe(result, o.DryRun))
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
