//go:build unix

package cluster_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/anykind/anykind/sandbox/cluster"
)

// A program, or a TestMain, starts a cluster. The first start builds it and writes
// what it builds to Progress.
func ExampleStart() {
	ctx := context.Background()
	c, err := cluster.Start(ctx, &cluster.Options{
		Components: []cluster.Component{cluster.Etcd, cluster.APIServer},
		Progress:   os.Stderr,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Stop(ctx) }()
	fmt.Println("export KUBECONFIG=" + c.Kubeconfig)
}
