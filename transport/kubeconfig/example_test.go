package kubeconfig_test

import (
	"errors"
	"fmt"
	"log"

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
	var parseError *kubeconfig.ParseError
	if errors.As(err, &parseError) {
		fmt.Println(parseError.Line, parseError.Column)
	}
	// Output:
	// line 6, column 15: not a kubeconfig: user "jane": field "password" is a number, want a string (put it in quotes)
	// 6 15
}
