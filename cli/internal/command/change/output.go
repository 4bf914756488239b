package change

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/unstructured"
)

// output prints changed objects: a line for each by default, or in the format of -o.
type output struct {
	print.Flags

	// suffix follows the operation in a line.
	suffix string
	out    io.Writer
	// printer is nil for lines. It writes to the current out.
	printer *print.Printer
}

func (o *output) addFlags(fs *pflag.FlagSet) {
	o.Flags = *print.NewFlags()
	o.AddObjectFlags(fs)
}

// complete parses the flags. Objects are printed to out.
func (o *output) complete(out io.Writer, mode dryRun) error {
	o.out = out
	switch mode {
	case dryRunClient:
		o.suffix = " (dry run)"
	case dryRunServer:
		o.suffix = " (server dry run)"
	case dryRunNone:
	}
	if o.Output == "" && o.Template == "" {
		return nil
	}
	var err error
	o.printer, err = o.Printer(&outputWriter{o})
	return err
}

// outputWriter writes to the current out of an output.
type outputWriter struct{ output *output }

func (w *outputWriter) Write(p []byte) (int, error) { return w.output.out.Write(p) }

// Unwrap returns out, for printable.LineFor.
func (w *outputWriter) Unwrap() io.Writer { return w.output.out }

// isLine reports whether each object is printed as a line.
func (o *output) isLine() bool { return o.printer == nil }

// object prints a changed object. operation is the past participle, such as "created".
func (o *output) object(obj *unstructured.Object, operation string) error {
	if o.printer != nil {
		return o.printer.Object(obj)
	}
	return o.line(print.Name(obj), operation)
}

// line prints a result: deployment.apps/web created.
func (o *output) line(name, operation string) error {
	_, err := fmt.Fprintln(o.out, printable.LineFor(o.out, name+" "+operation+o.suffix))
	return err
}

func kindName(kind, group string) string {
	if group == "" {
		return strings.ToLower(kind)
	}
	return strings.ToLower(kind) + "." + group
}
