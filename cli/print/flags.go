package print

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/cli/internal/printable"
)

// Flags are the values of kubectl's output flags, and of --where, --neat and --color.
type Flags struct {
	// Output is the format with its argument, such as json or custom-columns=NAME:.metadata.name; "" is the default of the
	// command: a table, or a line for each changed object.
	Output string
	// Template is the argument of a template format, unless Output has an argument.
	Template                 string
	AllowMissingTemplateKeys bool
	ShowManagedFields        bool

	NoHeaders, ShowLabels, ShowKind bool
	LabelColumns                    []string
	SortBy                          string

	// Where is a jq expression. An object is printed unless the result is false, null or empty.
	Where string
	// Neat removes server-set fields.
	Neat bool
	// Color is auto, always or never. With auto, tables are coloured on a terminal unless NO_COLOR is set.
	Color string
}

// NewFlags returns Flags with kubectl's defaults.
func NewFlags() *Flags { return &Flags{AllowMissingTemplateKeys: true, Color: "auto"} }

// formats maps the name of a format to true if the format has an argument.
func formats() map[string]bool {
	return map[string]bool{
		"json": false, "yaml": false, "kyaml": false, "name": false, "wide": false,
		"jsonpath": true, "jsonpath-as-json": true, "jsonpath-file": true,
		"go-template": true, "go-template-file": true, "template": true, "templatefile": true,
		"custom-columns": true, "custom-columns-file": true, "jq": true,
	}
}

// Formats returns the names of all formats, sorted.
func Formats() []string {
	var names []string
	for name := range formats() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// AddFlags defines all output flags in fs, as for get.
func (f *Flags) AddFlags(fs *pflag.FlagSet) {
	f.AddObjectFlags(fs)
	fs.BoolVar(&f.NoHeaders, "no-headers", f.NoHeaders, "When using the default or custom-column output format, don't print headers (default print headers).")
	fs.BoolVar(&f.ShowLabels, "show-labels", f.ShowLabels, "When printing, show all labels as the last column (default hide labels column)")
	fs.BoolVar(&f.ShowKind, "show-kind", f.ShowKind, "If present, list the resource type for the requested object(s).")
	fs.StringSliceVarP(&f.LabelColumns, "label-columns", "L", f.LabelColumns, "Accepts a comma separated list of labels that are going to be presented as columns. Names are case-sensitive. You can also use multiple flag options like -L label1 -L label2...")
	fs.StringVar(&f.SortBy, "sort-by", f.SortBy, "If non-empty, sort list types using this field specification.  The field specification is expressed as a JSONPath expression (e.g. '{.metadata.name}'). The field in the API resource specified by this JSONPath expression must be an integer or a string.")
	fs.StringVar(&f.Where, "where", f.Where, "Print only objects for which this jq expression holds (e.g. '.spec.replicas > 1').")
	fs.StringVar(&f.Color, "color", f.Color, "Colour tables: auto (on a terminal, unless NO_COLOR is set), always or never.")
}

// AddObjectFlags defines the format flags of commands for changing objects.
func (f *Flags) AddObjectFlags(fs *pflag.FlagSet) {
	fs.StringVarP(&f.Output, "output", "o", f.Output, "Output format. One of: ("+strings.Join(Formats(), ", ")+").")
	fs.StringVar(&f.Template, "template", f.Template, "Template string or path to template file to use when -o=go-template, -o=go-template-file. The template format is golang templates [http://golang.org/pkg/text/template/#pkg-overview].")
	fs.BoolVar(&f.AllowMissingTemplateKeys, "allow-missing-template-keys", f.AllowMissingTemplateKeys, "If true, ignore any errors in templates when a field or map key is missing in the template. Only applies to golang and jsonpath output formats.")
	fs.BoolVar(&f.ShowManagedFields, "show-managed-fields", f.ShowManagedFields, "If true, keep the managedFields when printing objects in JSON or YAML format.")
	fs.BoolVar(&f.Neat, "neat", f.Neat, "Leave out what servers set: status, managed fields, versions, UIDs and addresses.")
}

// IsTable reports whether the format is a server-side table.
func (f *Flags) IsTable() bool { return f.IsDefault() || f.Output == "wide" }

// IsDefault reports whether there is no -o and no template: a table, or a line for each changed object.
func (f *Flags) IsDefault() bool { return f.Output == "" && f.Template == "" }

// Validate returns an error for contradictory flags.
func (f *Flags) Validate() error {
	if f.ShowLabels && f.Output != "" && f.Output != "wide" {
		return fmt.Errorf("--show-labels option cannot be used with %s printer", f.Output)
	}
	if !slices.Contains([]string{"", "auto", "always", "never"}, f.Color) {
		return fmt.Errorf("--color %q: must be auto, always or never", f.Color)
	}
	return nil
}

// format returns the name of the format and its argument.
func (f *Flags) format() (name, argument string, err error) {
	output := f.Output
	switch {
	case f.IsDefault():
		output = "name"
	case output == "":
		output = "go-template"
	}
	name, argument, _ = strings.Cut(output, "=")
	if hasArgument, ok := formats()[name]; ok && hasArgument {
		if f.Template != "" {
			argument = f.Template
		}
		return name, argument, nil
	}
	if hasArgument, ok := formats()[strings.ToLower(output)]; ok && !hasArgument {
		return strings.ToLower(output), "", nil
	}
	return "", "", fmt.Errorf("unable to match a printer suitable for the output format %q, allowed formats are: %s", output, strings.Join(Formats(), ","))
}

// Printer writes objects in a format. It is not safe for concurrent use.
type Printer struct {
	w      io.Writer
	filter *filter
	sortBy string
	format formatter
	// isLine is set for the default format.
	isLine bool
}

// formatter is the format-specific part of a printer.
type formatter interface {
	// object writes a single object.
	object(w io.Writer, object map[string]any) error
	// list writes all objects as a list.
	list(w io.Writer, objects func(yield func(map[string]any) bool)) error
}

// Printer returns a printer to w, or an error for an invalid format. Commands for changing objects call it before they send a
// request. The default format is the name of each object: see Printer.Changed. The format must not be wide: see Table. If w is
// a terminal, control characters in objects are replaced.
func (f *Flags) Printer(w io.Writer) (*Printer, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	name, argument, err := f.format()
	if err != nil {
		return nil, err
	}
	format, err := f.formatter(name, argument)
	if err != nil {
		return nil, err
	}
	filter, err := f.newFilter(name)
	if err != nil {
		return nil, err
	}
	return &Printer{w: printable.Writer(w), filter: filter, sortBy: f.SortBy, format: format, isLine: f.IsDefault()}, nil
}

func (f *Flags) formatter(name, argument string) (formatter, error) {
	switch name {
	case "json":
		return &jsonFormat{}, nil
	case "yaml":
		return &yamlFormat{}, nil
	case "kyaml":
		return &kyamlFormat{}, nil
	case "name":
		return nameFormat{}, nil
	case "jq":
		return newJQFormat(argument)
	case "custom-columns", "custom-columns-file":
		return newColumnsFormat(name, argument, f.NoHeaders)
	case "wide":
		return nil, errors.New("print wide: the format is a table")
	}
	if argument == "" {
		return nil, errors.New("template format specified but no template given")
	}
	if strings.HasSuffix(name, "file") {
		data, err := os.ReadFile(argument)
		if err != nil {
			return nil, fmt.Errorf("error reading --template %s, %w", argument, err)
		}
		argument = string(data)
	}
	if strings.HasPrefix(name, "jsonpath") {
		return newJSONPathFormat(argument, f.AllowMissingTemplateKeys, name == "jsonpath-as-json")
	}
	return newTemplateFormat(argument, f.AllowMissingTemplateKeys)
}
