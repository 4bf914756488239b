//go:build unix

package sandbox_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/anykind/anykind/sandbox/sandbox"
)

// A program, or a TestMain, starts a cluster of its own. The first time this
// builds it, which Progress tells of.
func ExampleStart() {
	ctx := context.Background()
	cluster, err := sandbox.Start(ctx, &sandbox.Options{
		Components: []sandbox.Component{sandbox.Etcd, sandbox.APIServer},
		Progress:   os.Stderr,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = cluster.Stop(ctx) }()
	fmt.Println("export KUBECONFIG=" + cluster.Kubeconfig)
}
