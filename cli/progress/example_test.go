package progress_test

import (
	"fmt"
	"os"

	"github.com/anykind/anykind/cli/progress"
)

// On a terminal, the line of the deployment is redrawn below the printed lines. Here, standard error is no terminal: a wait that is over
// soon prints nothing.
func ExampleDisplay() {
	display := progress.New(os.Stderr)
	defer display.Close()
	out := display.Above(os.Stdout)
	for available := range 3 {
		display.Update("web", "deployment web: %d of 2 replicas are available", available)
	}
	fmt.Fprintln(out, "deployment.apps/web is ready")
	display.Remove("web")
	// Output: deployment.apps/web is ready
}
