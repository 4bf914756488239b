package plans

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/plan"
)

type planOptions struct {
	planFlags

	output            string
	save              string
	showManagedFields bool
	showSecrets       bool
}

func planCommand(s *command.State) *cobra.Command {
	o := &planOptions{}
	cmd := &cobra.Command{
		Use:   "plan -f FILENAME",
		Short: "Show what an apply would do",
		Long: "Show what an apply would do: the objects to create, change, replace and delete, the present managers of changed fields, " +
			"conflicts, and what deletes delete further. The server responds by a dry run. Objects in namespaces and of kinds that the same " +
			"files create are planned by a copy of the cluster, if the program anyctl-copy is installed. The output names what was not " +
			"validated.\n\nWith --save, the plan is applied later by: anyctl apply --plan FILE. The file has the objects in full, Secrets " +
			"included, and is readable by its owner alone.\n\nThe exit status is 1 if an object would be rejected.",
		Example: "  anyctl plan -f ./deploy\n  anyctl plan -f ./deploy --prune --applyset=web -n shop --save web.plan\n  anyctl apply --plan web.plan",
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	fs := cmd.Flags()
	o.addFlags(fs, s, "plan")
	fs.StringVarP(&o.output, "output", "o", "text", "Output format. One of: text, json, short. short is a Markdown table.")
	fs.StringVar(&o.save, "save", "", "Write the plan to a file for apply --plan.")
	fs.BoolVar(&o.showManagedFields, "show-managed-fields", false, "If true, include managed fields in the diff.")
	fs.BoolVar(&o.showSecrets, "show-secrets", false, "If true, do not mask secret values in the diff.")
	return cmd
}

func (o *planOptions) run(cmd *cobra.Command, s *command.State, args []string) error {
	if err := o.validate(cmd, args); err != nil {
		return err
	}
	text := &plan.TextOptions{ShowSecrets: o.showSecrets, ShowManagedFields: o.showManagedFields}
	var show func(*plan.Plan) error
	switch o.output {
	case "text":
		show = func(p *plan.Plan) error { return p.WriteText(s.Out, text) }
	case "json":
		show = func(p *plan.Plan) error { return p.WriteJSON(s.Out, text) }
	case "short":
		show = func(p *plan.Plan) error { return p.WriteShort(s.Out) }
	default:
		return fmt.Errorf("unable to match a printer suitable for the output format %q, allowed formats are: json,short,text", o.output)
	}
	planned, _, err := o.plan(cmd.Context(), s, func(context.Context, string) {}) // the plan has the warnings
	if err != nil {
		return err
	}
	if o.save != "" {
		if err := save(o.save, planned); err != nil {
			return err
		}
	}
	if err := show(planned); err != nil {
		return err
	}
	if planned.Err() != nil {
		return &exit.Error{Code: 1} // the output has the errors
	}
	return nil
}

// save writes a plan to a file that its owner alone can read.
func save(path string, planned *plan.Plan) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := file.Chmod(0o600); err != nil { // of an existing file
		return err
	}
	return planned.Save(file)
}

// Load reads the plan in a file. "-" is the standard input.
func Load(path string, in io.Reader) (*plan.Plan, error) {
	if path == "-" {
		return plan.Load(in)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	planned, err := plan.Load(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return planned, nil
}
