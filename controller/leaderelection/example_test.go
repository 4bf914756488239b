package leaderelection_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/anykind/anykind/controller/leaderelection"
	"github.com/anykind/anykind/internal/testing/controllertest"
)

func ExampleRun() {
	ctx := context.Background()
	client, closeAll, err := controllertest.ExampleServer(ctx, os.Stdout)
	if err != nil {
		log.Fatal(err)
	}
	defer closeAll()
	leases, err := client.Resource(ctx, "leases.coordination.k8s.io")
	if err != nil {
		log.Fatal(err)
	}

	err = leaderelection.Run(ctx, leases.Namespace("shop"), "widgets", nil, func(ctx context.Context, token int64) error {
		fmt.Println("leading, with the token", token)
		return nil // a controller runs until ctx ends
	})
	fmt.Println(err)
	// Output:
	// leading, with the token 0
	// <nil>
}
