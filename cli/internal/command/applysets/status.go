package applysets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured/manifest"
)

// StatusCommand returns the command status.
func StatusCommand(s *command.State) *cobra.Command {
	set := &Flags{}
	files := &flags.Files{Reader: manifest.Reader{In: s.In}}
	cmd := &cobra.Command{
		Use:   "status --applyset=[RESOURCE[.GROUP]/]NAME [-f FILENAME]",
		Short: "Show the objects of a set, their readiness and their drift",
		Long: "Show the objects of a set that apply --applyset has applied, and whether they are ready. With -f the objects are compared with " +
			"the files: a row for each field that was changed, is missing or has a different owner, with the manager that " +
			"wrote it and the time since then. Values of Secrets are not shown.\n\n" +
			"The exit code is 0 if all objects are ready and, with -f, nothing differs from the files. Otherwise it is 1, as after an error.",
		Example:           "  anyctl status --applyset=web -n shop\n  anyctl status --applyset=web -n shop -f ./deploy",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return command.UsageError(cmd, "Unexpected args: %v", args)
			}
			if !set.IsSet() {
				return errors.New("--applyset is required")
			}
			return status(cmd.Context(), s, set, files)
		},
	}
	set.AddFlags(cmd.Flags(), "to show")
	files.AddFlags(cmd.Flags(), "that the objects are compared with")
	return cmd
}

func status(ctx context.Context, s *command.State, parent *Flags, files *flags.Files) error {
	set, err := parent.Open(ctx, s, nil)
	if err != nil {
		return err
	}
	var objects []*manifest.Object
	if !files.IsEmpty() {
		if objects, err = files.Read(ctx); err != nil {
			return err
		}
	}
	all, err := set.Status(ctx, objects)
	if err != nil {
		return errors.Join(setErrors(err, nil, objects)...)
	}
	if len(all) == 0 {
		return fmt.Errorf("the set of %s has no objects", set.Parent())
	}
	t := &statusTable{withFiles: !files.IsEmpty()}
	for i := range all {
		t.add(&all[i])
	}
	if err := t.write(s); err != nil {
		return err
	}
	if t.differs {
		return &exit.Error{Code: 1}
	}
	return nil
}

// statusTable collects a row for each difference, and a row for each object without differences.
type statusTable struct {
	withFiles bool
	rows      [][]string
	// differs is set if an object is not ready or has a difference.
	differs bool
}

// maxValue is the length of a value in the table, in bytes.
const maxValue = 60

func (t *statusTable) add(obj *applyset.ObjectStatus) {
	readyStatus := string(obj.Readiness.Status)
	message := ""
	if obj.Readiness.Status != readiness.Current {
		t.differs = true
		message = obj.Readiness.Message
	}
	row := func(drift, field, manager, age, message string) {
		ref := obj.Object
		name := strings.ToLower(ref.Kind.String()) + "/" + ref.Name
		cells := []string{cmp.Or(ref.Namespace, "-"), name, readyStatus, drift, cmp.Or(field, "-"), cmp.Or(manager, "-"), cmp.Or(age, "-"), message}
		t.rows = append(t.rows, cells)
		t.differs = t.differs || drift != "-"
	}
	switch {
	case obj.Live == nil:
		readyStatus = "NotFound"
		row("missing", "", "", "", "")
	case obj.Prunable && t.withFiles:
		row("left the set", "", "", "", message)
	case len(obj.Drift) == 0:
		row("-", "", "", "", message)
	}
	for _, drift := range obj.Drift {
		age := ""
		if !drift.Time.IsZero() {
			age = duration.HumanDuration(time.Since(drift.Time))
		}
		manager := drift.Manager
		if drift.Subresource != "" {
			manager += " (" + drift.Subresource + ")"
		}
		row(string(drift.Difference), drift.Field, manager, age, values(&drift))
	}
}

// values returns the values of a field: "blue" → "red".
func values(drift *applyset.FieldDrift) string {
	if drift.Want == "" && drift.Have == "" || drift.Want == drift.Have {
		return ""
	}
	return shorten(cmp.Or(drift.Want, "nothing")) + " → " + shorten(cmp.Or(drift.Have, "nothing"))
}

func shorten(value string) string {
	if len(value) <= maxValue {
		return value
	}
	return strings.ToValidUTF8(value[:maxValue], "") + "…"
}

func (t *statusTable) write(s *command.State) error {
	w := tabwriter.NewWriter(s.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "NAMESPACE\tOBJECT\tSTATUS\tDRIFT\tFIELD\tMANAGER\tAGE\tMESSAGE")
	for _, row := range t.rows {
		for i, cell := range row {
			row[i] = printable.Line(strings.ReplaceAll(cell, "\t", " "))
		}
		fmt.Fprintln(w, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	return w.Flush()
}
