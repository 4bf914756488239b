package resource_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/resource"
)

// The objects of -f without a server. With a Connection, and without Local, the arguments TYPE NAME, TYPE/NAME and selectors name objects
// of the server.
func ExampleFinder_Objects() {
	fs := pflag.NewFlagSet("shopctl", pflag.ContinueOnError)
	finder := &resource.Finder{Local: true, Connection: flags.NewConnection()}
	finder.Files.In = strings.NewReader(`
apiVersion: v1
kind: ConfigMap
metadata: {name: one, labels: {app: web}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: two}
`)
	finder.AddFlags(fs)
	if err := fs.Parse([]string{"-f", "-", "-l", "app=web"}); err != nil {
		log.Fatal(err)
	}
	for info, err := range finder.Objects(context.Background(), fs.Args(), false) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(info)
	}
	// Output: ConfigMap "one"
}
