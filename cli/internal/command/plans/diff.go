package plans

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/plan"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

// Exit codes of diff.
const (
	codeDifferent = 1
	codeFailed    = 2
)

type diffOptions struct {
	planFlags

	showManagedFields bool
	showSecrets       bool
}

func diffCommand(s *command.State) *cobra.Command {
	o := &diffOptions{}
	cmd := &cobra.Command{
		Use:   "diff -f FILENAME",
		Short: "Diff the live version against a would-be applied version",
		Long: "Diff configurations specified by file name or stdin between the current online configuration, and the configuration as " +
			"it would be if applied on the server.\n\nThe output is always YAML. The environment variable KUBECTL_EXTERNAL_DIFF selects a " +
			"diff program, with arguments: KUBECTL_EXTERNAL_DIFF=\"colordiff -N -u\". The default is diff -u -N.\n\nObjects in namespaces " +
			"and of kinds that the same files create are planned by a copy of the cluster, if the program anyctl-copy is installed.\n\n" +
			"Exit status: 0 without differences, 1 with differences, greater than 1 after an error.",
		Example: "  anyctl diff -f pod.json\n  cat service.yaml | anyctl diff -f -",
		RunE: func(cmd *cobra.Command, args []string) error {
			err := o.run(cmd, s, args)
			var hasCode *exit.Error
			if err != nil && !errors.As(err, &hasCode) {
				err = &exit.Error{Code: codeFailed, Err: err}
			}
			return err
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &exit.Error{Code: codeFailed, Err: command.UsageError(cmd, "%s", err)}
	})
	fs := cmd.Flags()
	o.addFlags(fs, s, "diff")
	fs.BoolVar(&o.showManagedFields, "show-managed-fields", false, "If true, include managed fields in the diff.")
	fs.BoolVar(&o.showSecrets, "show-secrets", false, "If true, do not mask secret values in the diff.")
	return cmd
}

func (o *diffOptions) run(cmd *cobra.Command, s *command.State, args []string) error {
	if err := o.validate(cmd, args); err != nil {
		return err
	}
	ctx := cmd.Context()
	planned, objects, err := o.plan(ctx, s, nil)
	if err != nil {
		return err
	}
	if err := firstError(planned, objects); err != nil {
		return err
	}
	for _, change := range planned.Changes {
		if change.Live != nil && change.Live.GetDeletionTimestamp() != nil && change.Action != plan.Keep {
			s.Errorf("Warning: Detected changes to resource %s which is currently being deleted.", change.Object.Name)
		}
	}
	return o.diff(ctx, s, planned)
}

// firstError returns the error of the first object in the files: kubectl ends there.
func firstError(planned *plan.Plan, objects []*manifest.Object) error {
	byPosition := map[string]*plan.Change{}
	for _, change := range planned.Changes {
		isFailed := change.Action == plan.Rejected || change.Action == plan.NotPlanned || change.Action == plan.Replace && change.Planned == nil
		switch {
		case !isFailed || change.Err == nil:
		case change.Position == "":
			return change.Err
		default:
			byPosition[change.Position] = change
		}
	}
	for _, obj := range objects {
		if change := byPosition[obj.Position()]; change != nil {
			return kubectlError(change, obj)
		}
	}
	return nil
}

// diff writes both states of all objects to folders, and runs the diff program.
func (o *diffOptions) diff(ctx context.Context, s *command.State, planned *plan.Plan) error {
	before, err := os.MkdirTemp("", "LIVE-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(before) }()
	after, err := os.MkdirTemp("", "MERGED-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(after) }()
	// The default program prints nothing about equal files.
	skipsUnchanged := os.Getenv(diffProgramEnv) == ""
	for _, change := range planned.Changes {
		live := change.Live
		merged := change.Planned
		if change.Action == plan.Keep || change.Action == plan.Unchanged && skipsUnchanged {
			continue
		}
		if !o.showSecrets {
			live, merged = masked(live, merged)
		}
		if err := errors.Join(o.write(before, change, live), o.write(after, change, merged)); err != nil {
			return err
		}
	}
	return runDiff(ctx, s, before, after)
}

// masked replaces the values of Secrets like kubectl, which leaves out lengths.
func masked(live, merged *unstructured.Object) (_, _ *unstructured.Object) {
	isSecret := func(obj *unstructured.Object) bool {
		return obj != nil && obj.GetAPIVersion() == "v1" && obj.GetKind() == "Secret"
	}
	if !isSecret(live) && !isSecret(merged) {
		return live, merged
	}
	mask := func(obj, opposite *unstructured.Object, suffix string) *unstructured.Object {
		if obj == nil {
			return nil
		}
		data, hasData := obj.Object["data"].(map[string]any)
		if !hasData {
			return obj
		}
		var opposed map[string]any
		if opposite != nil {
			opposed, _ = opposite.Object["data"].(map[string]any)
		}
		values := map[string]any{}
		for name, value := range data {
			values[name] = "***"
			if old, exists := opposed[name]; exists && old != value {
				values[name] = "*** (" + suffix + ")"
			}
		}
		fields := maps.Clone(obj.Object)
		fields["data"] = values
		return &unstructured.Object{Object: fields}
	}
	return mask(live, merged, "before"), mask(merged, live, "after")
}

// write writes an object to a file named GROUP.VERSION.KIND.NAMESPACE.NAME. The file of a missing object is empty.
func (o *diffOptions) write(folder string, change *plan.Change, obj *unstructured.Object) error {
	var data bytes.Buffer
	if obj != nil {
		printer, err := (&print.Flags{Output: "yaml", ShowManagedFields: o.showManagedFields}).Printer(&data)
		if err == nil {
			err = printer.Object(obj)
		}
		if err != nil {
			return fmt.Errorf("encode %s: %w", change.Object, err)
		}
	}
	name := strings.Join([]string{strings.ReplaceAll(change.APIVersion, "/", "."), change.Object.Kind.Kind, change.Object.Namespace, change.Object.Name}, ".")
	return os.WriteFile(filepath.Join(folder, name), data.Bytes(), 0o600)
}

// diffProgramEnv names the diff program.
const diffProgramEnv = "KUBECTL_EXTERNAL_DIFF"

// diffArgument matches the arguments of diffProgramEnv that kubectl passes on.
const diffArgument = `^[a-zA-Z0-9-=]+$`

// runDiff runs the diff program on two folders. It writes to the terminal itself.
func runDiff(ctx context.Context, s *command.State, before, after string) error {
	program := "diff"
	args := []string{"-u", "-N"}
	if text := os.Getenv(diffProgramEnv); text != "" {
		words := strings.Split(text, " ")
		program = words[0]
		allowed := regexp.MustCompile(diffArgument)
		// As in kubectl, the folders are in front of the arguments.
		args = slices.DeleteFunc(words[1:], func(word string) bool { return !allowed.MatchString(word) })
		args = append([]string{before, after}, args...)
	} else {
		args = append(args, before, after)
	}
	if err := printable.Flush(s.Out); err != nil {
		return err
	}
	diff := exec.CommandContext(ctx, program, args...)
	diff.Stdout = printable.Unwrap(s.Out) // in colours
	diff.Stderr = printable.Unwrap(s.Err)
	err := diff.Run()
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended) && ended.ExitCode() == codeDifferent:
		return &exit.Error{Code: codeDifferent}
	case err != nil:
		var start *exec.Error
		if errors.As(err, &start) {
			err = start.Err
		}
		return fmt.Errorf("failed to run %q: %w", program, err)
	}
	return nil
}
