package change

import (
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/unstructured"
)

// output prints changed objects: a line for each by default, or in the format of -o.
type output struct {
	print.Flags

	out     io.Writer
	printer *print.Printer
	// suffix follows the operation in a line.
	suffix string
}

func (o *output) addFlags(fs *pflag.FlagSet) {
	o.Flags = *print.NewFlags()
	o.AddObjectFlags(fs)
}

// complete parses the flags. Objects are printed to out.
func (o *output) complete(out io.Writer, mode flags.DryRun) error {
	o.out = out
	o.suffix = mode.Suffix()
	printer, err := o.Printer(out)
	o.printer = printer
	return err
}

// isLine reports whether each object is printed as a line.
func (o *output) isLine() bool { return o.Output == "" && o.Template == "" }

// object prints a changed object. operation is the past participle, such as "created".
func (o *output) object(obj *unstructured.Object, operation string) error {
	return o.printer.Changed(obj, operation+o.suffix)
}

func kindName(kind, group string) string {
	if group == "" {
		return strings.ToLower(kind)
	}
	return strings.ToLower(kind) + "." + group
}
