package exit_test

import (
	"errors"
	"fmt"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/cli/exit"
)

// Errors have the texts of kubectl, a line for each joined error.
func ExampleReport() {
	missing := apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web")
	fmt.Println(exit.Report(os.Stdout, missing))
	fmt.Println(exit.Report(os.Stdout, errors.Join(missing, errors.New("the shop is closed"))))
	fmt.Println(exit.Report(os.Stdout, &exit.Error{Code: 3, Err: errors.New("two objects differ")}))
	fmt.Println(exit.Report(os.Stdout, nil))
	// Output:
	// Error from server (NotFound): deployments.apps "web" not found
	// 1
	// Error from server (NotFound): deployments.apps "web" not found
	// the shop is closed
	// 1
	// error: two objects differ
	// 3
	// 0
}

// The usage below an error, as kubectl prints it.
func ExampleWithHelp() {
	err := exit.WithHelp(errors.New("no shop is given"), "\nSee 'shopctl open --help'")
	fmt.Println(exit.Report(os.Stdout, err))
	fmt.Println(exit.Report(os.Stdout, exit.WithText(err, "The shop is missing.")))
	// Output:
	// error: no shop is given
	// See 'shopctl open --help'
	// 1
	// error: The shop is missing.
	// 1
}
