package print_test

import (
	"fmt"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/dynamic"
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

// The name that kubectl prints with -o name.
func ExampleName() {
	fmt.Println(print.Name(&unstructured.Object{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"},
	}}))
	// Output: deployment.apps/web
}

// The rows are those of [dynamic.Handle.Tables] and of targets of package resource. A column with a priority needs -o wide.
func ExampleFlags_Rows() {
	columns := []metav1.TableColumnDefinition{{Name: "Name", Type: "string"}, {Name: "Restarts", Type: "integer"}, {Name: "Node", Type: "string", Priority: 1}}
	rows := func(yield func(*dynamic.TableRow, error) bool) {
		_ = yield(&dynamic.TableRow{Columns: columns, Cells: []any{"db", int64(0), "one"}}, nil) &&
			yield(&dynamic.TableRow{Columns: columns, Cells: []any{"web", int64(2), "two"}}, nil)
	}
	for _, format := range []string{"", "wide"} {
		output := print.NewFlags()
		output.Output = format
		if err := output.Rows(os.Stdout, &print.TableOptions{WithSeparator: format != ""}, rows); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// NAME   RESTARTS
	// db     0
	// web    2
	//
	// NAME   RESTARTS   NODE
	// db     0          one
	// web    2          two
}

// A condition in jq, as in --where.
func ExampleParseWhere() {
	isRed, err := print.ParseWhere(`.data.color == "red"`)
	if err != nil {
		log.Fatal(err)
	}
	for _, obj := range slices.SortedFunc(slices.Values(configMaps()), func(a, b *unstructured.Object) int { return strings.Compare(a.GetName(), b.GetName()) }) {
		fmt.Println(isRed.Match(obj))
	}
	// Output:
	// false <nil>
	// true <nil>
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
