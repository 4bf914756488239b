package discovery_test

import (
	"fmt"
	"log"
	"os"

	"github.com/anykind/anykind/discovery"
)

func ExampleDefaultCacheDir() {
	if err := os.Setenv("KUBECACHEDIR", "/var/cache/kube"); err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.Unsetenv("KUBECACHEDIR") }()
	dir, err := discovery.DefaultCacheDir()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(dir)
	// Output: /var/cache/kube
}
