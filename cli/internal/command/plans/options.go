// Package plans implements diff, plan, apply --plan, copy and rehearse.
package plans

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/command/applysets"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/plan"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

// Commands returns the package's commands.
func Commands(s *command.State) []*cobra.Command {
	return []*cobra.Command{
		diffCommand(s), planCommand(s),
		s.CopyCommand("copy FILE", "Copy a cluster to a file", "save"),
		s.CopyCommand("rehearse -- CMD ...", "Run a controller against a copy of a cluster and print what it would write", "rehearse"),
	}
}

// planFlags are the flags of diff and plan.
type planFlags struct {
	files          flags.Files
	labelSelector  string
	serverSide     bool
	forceConflicts bool
	fieldManager   string
	prune          bool
	set            applysets.Flags
	workers        int
	copied         *command.Copy
}

func (f *planFlags) addFlags(fs *pflag.FlagSet, s *command.State, purpose string) {
	f.files.In = s.In
	f.files.AddFlags(fs, "that contains the configuration to "+purpose)
	fs.StringVarP(&f.labelSelector, "selector", "l", "", "Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'.(e.g. -l key1=value1,key2=value2,key3 in (value3)). Matching objects must satisfy all of the specified label constraints.")
	fs.BoolVar(&f.serverSide, "server-side", true, "Apply runs on the server; no other way is supported.")
	fs.BoolVar(&f.forceConflicts, "force-conflicts", false, "If true, take over the fields that other managers own.")
	fs.StringVar(&f.fieldManager, "field-manager", "", "Name of the manager used to track field ownership.")
	fs.BoolVar(&f.prune, "prune", false, "Include the objects of --applyset that are not in the files.")
	f.set.AddFlags(fs, "to "+purpose+" and prune")
	fs.IntVar(&f.workers, "concurrency", 10, "Number of objects to process in parallel.")
	f.copied = s.NewCopy(fs)
}

func (f *planFlags) validate(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 0:
		return command.UsageError(cmd, "Unexpected args: %v", args)
	case f.files.IsEmpty():
		return errors.New("must specify one of -f and -k")
	case !f.serverSide:
		return errors.New("--server-side=false is not supported: apply runs on the server")
	case f.set.IsSet() != f.prune:
		return errors.New("--prune and --applyset need each other")
	case f.set.IsSet() && f.labelSelector != "":
		return errors.New("--selector is incompatible with --applyset")
	case f.set.IsSet() && f.fieldManager != "":
		return errors.New("--field-manager is incompatible with --applyset: a set has its own field manager")
	}
	return nil
}

// plan reads the files and plans their apply. The copy of the cluster is closed.
func (f *planFlags) plan(ctx context.Context, s *command.State, onWarning func(context.Context, string)) (_ *plan.Plan, objects []*manifest.Object, err error) {
	if objects, err = resource.ReadFiles(ctx, &f.files, nil); err != nil {
		return nil, nil, err
	}
	if objects, err = resource.SelectFiles(objects, f.labelSelector); err != nil {
		return nil, nil, err
	}
	client, err := s.Client(ctx)
	if err != nil {
		return nil, nil, err
	}
	namespace, isExplicit, err := s.Connection.Namespace(ctx)
	if err != nil {
		return nil, nil, err
	}
	client = client.WithDefaults(&dynamic.Defaults{FieldManager: f.fieldManager, OnWarning: onWarning})
	isDefault := s.IsDefaultManager(cmp.Or(f.fieldManager, s.Connection.FieldManager))
	opts := &plan.Options{
		Namespace: namespace, ForceConflicts: f.forceConflicts, Workers: f.workers, Copy: f.copied.Open(),
		Migrates: func(live *unstructured.Object) func(metav1.ManagedFieldsEntry) bool {
			return command.KubectlManagers(live, isDefault)
		},
		MigratesLater: !isDefault,
	}
	if f.set.IsSet() {
		if opts.Set, err = f.set.Open(ctx, s, nil); err != nil {
			return nil, nil, err
		}
	}
	planned, err := plan.Objects(ctx, client, objects, opts)
	if err = errors.Join(err, f.copied.Close()); err != nil {
		return nil, nil, err
	}
	if isExplicit && !f.set.IsSet() { // a set may have several namespaces
		err = checkNamespaces(planned, namespace)
	}
	return planned, objects, err
}

// checkNamespaces rejects an object in a namespace other than --namespace, as apply does.
func checkNamespaces(planned *plan.Plan, namespace string) error {
	for _, change := range planned.Changes {
		if own := change.Object.Namespace; own != "" && own != namespace && change.Position != "" {
			return fmt.Errorf("the namespace from the provided object %q does not match the namespace %q. You must pass '--namespace=%s' to perform this operation.", own, namespace, own)
		}
	}
	return nil
}

// kubectlError returns the error of an object. An unknown kind has kubectl's text.
func kubectlError(change *plan.Change, obj *manifest.Object) error {
	var noMatch *restmapper.NoMatchError
	if errors.As(change.Err, &noMatch) {
		return resource.ResolveError(obj, change.Err)
	}
	return change.Err
}
