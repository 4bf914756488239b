package edit_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/anykind/anykind/transport/kubeconfig/edit"
)

func ExampleFile() {
	dir, err := os.MkdirTemp("", "kubeconfig")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "config")

	err = edit.File(context.Background(), path, func(document *edit.Document) error {
		return document.Put(&kubeconfig.File{
			CurrentContext: "dev",
			Clusters:       map[string]kubeconfig.Cluster{"dev": {Server: "https://127.0.0.1:6443"}},
			Users:          map[string]kubeconfig.User{"dev": {TokenFile: "/run/dev/token"}},
			Contexts:       map[string]kubeconfig.Context{"dev": {Cluster: "dev", User: "dev"}},
		})
	})
	if err != nil {
		log.Fatal(err)
	}
	written, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(written))
	// Output:
	// apiVersion: v1
	// kind: Config
	// clusters:
	// - name: dev
	//   cluster:
	//     server: https://127.0.0.1:6443
	// users:
	// - name: dev
	//   user:
	//     tokenFile: /run/dev/token
	// contexts:
	// - name: dev
	//   context:
	//     cluster: dev
	//     user: dev
	// current-context: dev
}
