package command

import (
	"io"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/unstructured"
)

// Output prints changed objects: a line for each by default, or in the format of -o.
type Output struct {
	print.Flags

	// Out is set by Complete.
	Out     io.Writer
	printer *print.Printer
	// suffix follows the operation in a line.
	suffix string
}

// AddFlags defines -o and the flags of its formats.
func (o *Output) AddFlags(fs *pflag.FlagSet) {
	o.Flags = *print.NewFlags()
	o.AddObjectFlags(fs)
}

// Complete parses the flags. Objects are printed to out.
func (o *Output) Complete(out io.Writer, mode flags.DryRun) error {
	o.Out = out
	o.suffix = mode.Suffix()
	printer, err := o.Printer(out)
	o.printer = printer
	return err
}

// Object prints a changed object. operation is the past participle, such as "created".
func (o *Output) Object(obj *unstructured.Object, operation string) error {
	return o.printer.Changed(obj, operation+o.suffix)
}
