package print_test

import (
	"fmt"
	"log"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/unstructured"
)

func configMaps() []*unstructured.Object {
	var all []*unstructured.Object
	for name, color := range map[string]string{"one": "blue", "two": "red"} {
		obj := &unstructured.Object{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"color": color}}}
		obj.SetName(name)
		obj.SetUID("7f3e")
		all = append(all, obj)
	}
	return all
}

// A command with kubectl's output flags, and --where.
func ExampleFlags() {
	for _, args := range [][]string{
		{"-o", "custom-columns=NAME:.metadata.name,COLOR:.data.color", "--sort-by=.data.color"},
		{"-o", "yaml", "--where", `.data.color == "red"`, "--neat"},
		{"-o", "name", "--sort-by=.metadata.name"},
	} {
		fs := pflag.NewFlagSet("shopctl", pflag.ContinueOnError)
		output := print.NewFlags()
		output.AddFlags(fs)
		if err := fs.Parse(args); err != nil {
			log.Fatal(err)
		}
		printer, err := output.Printer(os.Stdout)
		if err != nil {
			log.Fatal(err)
		}
		if err := printer.List(slices.Values(configMaps())); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// NAME   COLOR
	// one    blue
	// two    red
	// apiVersion: v1
	// items:
	// - apiVersion: v1
	//   data:
	//     color: red
	//   kind: ConfigMap
	//   metadata:
	//     name: two
	// kind: List
	// metadata:
	//   resourceVersion: ""
	// configmap/one
	// configmap/two
}

// A line for each changed object, unless -o names a format.
func ExamplePrinter_Changed() {
	output := print.NewFlags()
	printer, err := output.Printer(os.Stdout)
	if err != nil {
		log.Fatal(err)
	}
	obj := &unstructured.Object{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
	obj.SetName("web")
	fmt.Println(printer.Changed(obj, "suspended"))
	// Output:
	// deployment.apps/web suspended
	// <nil>
}
