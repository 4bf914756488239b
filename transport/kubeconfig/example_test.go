package kubeconfig_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/anykind/anykind/transport/kubeconfig"
)

func ExampleFile_Resolve() {
	file, err := kubeconfig.Parse([]byte(`
apiVersion: v1
kind: Config
current-context: shop
contexts:
- {name: shop, context: {cluster: home, user: jane, namespace: shop}}
clusters:
- {name: home, cluster: {server: "https://10.0.0.1:6443"}}
users:
- {name: jane, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./login, interactiveMode: Never}}}
`), "/home/jane/.kube")
	if err != nil {
		log.Fatal(err)
	}
	resolved, err := file.Resolve(nil) // the current context
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(resolved.Cluster.Server, resolved.Namespace, resolved.User.Exec.Command)

	_, err = file.Resolve(&kubeconfig.ResolveOptions{Context: "work"})
	fmt.Println(err)
	// Output:
	// https://10.0.0.1:6443 shop /home/jane/.kube/login
	// context "work" does not exist (contexts: shop)
}

func ExampleParse_broken() {
	_, err := kubeconfig.Parse([]byte(`
kind: Config
users:
- name: jane
  user:
    password: 12345
`), "")
	fmt.Println(err)
	var wrong *kubeconfig.ParseError
	if errors.As(err, &wrong) {
		fmt.Println(wrong.Line, wrong.Column)
	}
	// Output:
	// line 6, column 15: not a kubeconfig: user "jane": field "password" holds a number where a string belongs: put it in quotes
	// 6 15
}

func ExampleEdit() {
	dir, err := os.MkdirTemp("", "kubeconfig")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "config")

	err = kubeconfig.Edit(context.Background(), path, func(d *kubeconfig.Document) error {
		return d.Put(&kubeconfig.File{
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
