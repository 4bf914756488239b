package resource_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/internal/testing/scripted"
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

// A command with arguments as those of kubectl get. Targets reads no objects: the command prints them as tables or in a format.
func ExampleFinder_Targets() {
	ctx := context.Background()
	api := scripted.New("/v1 configmaps configmap ConfigMap cm\n/v1 secrets secret Secret")
	api.Handle("GET /api/v1/namespaces/shop/configmaps", scripted.JSON(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},
		"columnDefinitions":[{"name":"Name","type":"string"},{"name":"Data","type":"integer"}],"rows":[{"cells":["settings",2]}]}`))
	api.Handle("GET /api/v1/namespaces/shop/secrets", scripted.JSON(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},
		"columnDefinitions":[{"name":"Name","type":"string"}],"rows":[]}`))
	server := httptest.NewServer(api) // in place of a cluster
	defer server.Close()
	connection := &flags.Connection{Kubeconfig: os.DevNull, Server: server.URL, NamespaceFlag: "shop"} // of flags, in a program
	defer connection.Close()

	finder := &resource.Finder{Connection: connection, AllowTypes: true}
	for _, arg := range []string{"cm", "secrets", "shops"} {
		targets, err := finder.Targets(ctx, []string{arg})
		if err != nil {
			fmt.Println(err)
			continue
		}
		count := 0
		for _, target := range targets {
			for row, err := range target.Rows(ctx, metav1.IncludeNone, finder.Selection.ListOptions()) { // print.Flags.Rows prints them
				if err != nil {
					log.Fatal(err)
				}
				count++
				fmt.Println(row.Cells...)
			}
		}
		if count == 0 {
			fmt.Println(finder.NoneFound(ctx, targets))
		}
	}
	// Output:
	// settings 2
	// No resources found in shop namespace. <nil>
	// the server serves no resource or kind "shops"
}
